"""Chrome's trace events as a viewer reads them, and what it takes for granted.

`ts` and `dur` are read as Perfetto reads them: as a double times 1,000, rounded (its
`importers/json/json_trace_tokenizer.cc`). Slices of a thread may only nest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.views.perfetto import chrome_trace

Json = Any

REQUIRED: Final[Mapping[str, set[str]]] = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"},
    "i": {"ph", "cat", "name", "pid", "tid", "ts", "s", "args"},
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A slice or an instant as it is shown."""

    process: str
    thread: str
    name: str
    start_ns: int
    duration_ns: int
    args: Json


def written(*traces: ExplainedTrace) -> Json:
    """The file of some traces, read again."""
    return json.loads(json.dumps(chrome_trace(traces), allow_nan=False))


def slices(file: Json, process: str = "") -> list[Drawn]:
    """The slices of a process, or of all; in the order of the file."""
    return [one for one in _shown(file, "X") if process in ("", one.process)]


def instants(file: Json) -> list[Drawn]:
    """The instants of all processes."""
    return _shown(file, "i")


def processes(file: Json) -> list[str]:
    """Names of the processes from the top down."""
    said = _said(file, "process_sort_index", "sort_index")
    called = _said(file, "process_name", "name")
    return [called[key] for key in sorted(called, key=lambda key: said[key])]


def check(file: Json) -> None:
    """All that a viewer takes for granted."""
    assert set(file) == {"displayTimeUnit", "traceEvents", "otherData"}
    for event in file["traceEvents"]:
        assert set(event) == REQUIRED[event["ph"]]
        assert event["pid"] > 0
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    tids = {(event["pid"], event["tid"]) for event in file["traceEvents"]}
    assert len({tid for _, tid in tids}) == len(tids)  # a thread has one process
    for threaded in _by_thread(file).values():
        _check_nested(threaded)


def _check_nested(threaded: Sequence[tuple[int, int]]) -> None:
    """Sorted by start and otherwise left in their order, as a viewer does."""
    around: list[int] = []
    for start_ns, end_ns in sorted(threaded, key=lambda one: one[0]):
        while around and around[-1] <= start_ns:
            around.pop()
        assert not around or end_ns <= around[-1]
        around.append(end_ns)


def _by_thread(file: Json) -> Mapping[int, Sequence[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in file["traceEvents"]:
        if event["ph"] != "M":
            start_ns = nanoseconds(event["ts"])
            end_ns = start_ns + nanoseconds(event.get("dur", 0))
            found[event["tid"]].append((start_ns, end_ns))
    return found


def _shown(file: Json, kind: str) -> list[Drawn]:
    in_process = _said(file, "process_name", "name")
    on_thread = _said(file, "thread_name", "name")
    return [
        Drawn(
            in_process[event["pid"], event["pid"]],
            on_thread[event["pid"], event["tid"]],
            event["name"],
            nanoseconds(event["ts"]),
            nanoseconds(event.get("dur", 0)),
            event["args"],
        )
        for event in file["traceEvents"]
        if event["ph"] == kind
    ]


def _said(file: Json, what: str, key: str) -> dict[tuple[int, int], Any]:
    return {
        (event["pid"], event["tid"]): event["args"][key]
        for event in file["traceEvents"]
        if event["name"] == what and event["ph"] == "M"
    }


def nanoseconds(value_us: float) -> int:
    """As Perfetto rounds."""
    return value_us * 1000 if isinstance(value_us, int) else round(value_us * 1000.0)
