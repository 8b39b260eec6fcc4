"""What a hop costs: the processor beside a Collector that passes on, and one that groups by trace.

    sender ── OTLP over gRPC ──> who is measured ── OTLP over gRPC ──> counting end

All three are processes of their own; only the one in the middle is measured, from outside. Each run
starts it anew, lets it warm up, and ends when the last span has come out. The same requests go
through all of them, in turn, round after round. Needs `make peers`.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import hop_ends
from bench.processes import Measured, free_address, started
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.traces import MakeTrace, batches, llm_trace, plain_trace

SUMMARY: Final = "spans per CPU second through a hop, and memory per held span, beside a Collector"

ROOT: Final = Path(__file__).parents[1]
KINDS: Final[dict[str, MakeTrace]] = {"llm": llm_trace, "plain": plain_trace}
PASSING: Final = "Collector, passes on"
GROUPING: Final = "Collector, groupbytrace 2 s"
BATCHING: Final = "Collector, the same and batch"
OURS: Final = "llmlat processor"

_WAIT_S: Final = 2
_NEVER_S: Final = 600
_TWICE: Final = 2
_PLAIN_LIMIT: Final = 120_000
_HELD_LIMIT_BYTES: Final = 1_500


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody in the middle stands.

    Attributes:
        listen: where it receives.
        send: where it sends to.
        folder: for its files.
        wait_s: how long it holds what it holds.
    """

    listen: str
    send: str
    folder: Path
    wait_s: int = _WAIT_S


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done: requests of about 500 spans, and rounds."""

    requests: int
    warm_up: int
    rounds: int


_FULL: Final = Effort(requests=200, warm_up=20, rounds=5)
_QUICK: Final = Effort(requests=20, warm_up=4, rounds=3)

Command = Callable[[Place], list[str]]


def _passing(at: Place) -> list[str]:
    return _collector(at, {})


def _grouping(at: Place) -> list[str]:
    return _collector(at, _groups(at))


def _batching(at: Place) -> list[str]:
    """What `groupbytrace` lets go trace by trace is put together again."""
    return _collector(at, {**_groups(at), "batch": {"send_batch_size": 500, "timeout": "200ms"}})


def _groups(at: Place) -> dict[str, object]:
    return {"groupbytrace": {"wait_duration": f"{at.wait_s}s", "num_traces": 10**6}}


def _collector(at: Place, processors: dict[str, object]) -> list[str]:
    """A Collector of the two ends and no more; JSON is YAML, too."""
    onward = {
        "endpoint": at.send,
        "compression": "none",
        "tls": {"insecure": True},
        "sending_queue": {"block_on_overflow": True},
    }
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": at.listen}}}},
        "processors": processors,
        "exporters": {"otlp_grpc": onward},
        "service": {
            "pipelines": {
                "traces": {
                    "receivers": ["otlp"],
                    "processors": list(processors),
                    "exporters": ["otlp_grpc"],
                }
            },
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
        },
    }
    file = at.folder / "collector.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    return [_binary("collector"), f"--config={file}"]


def _binary(peer: str) -> str:
    """The program that `make peers` has built."""
    backends: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "jaeger" / "backends.py"))
    return str(backends["binary"](peer))


def _ours(at: Place) -> list[str]:
    """Everything on: the journal, lanes, metrics; each start has a journal of its own."""
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    ends = (f"--listen={at.listen}", f"--export={at.send}", "--telemetry=127.0.0.1:0")
    window = (f"--idle={at.wait_s}", f"--hold-max={max(60, at.wait_s)}")
    return [llmlat, "processor", *ends, *window, f"--state={at.folder / 'state'}"]


CONTENDERS: Final[dict[str, Command]] = {
    PASSING: _passing,
    GROUPING: _grouping,
    BATCHING: _batching,
    OURS: _ours,
}
HOLDING: Final = (GROUPING, OURS)
"""Those whose held spans are weighed."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one kind in files, the same for everybody.

    Attributes:
        warm_up: sent first.
        measured: sent then.
        warm_up_spans: how many spans are in the one.
        spans: how many in the other.
    """

    warm_up: Path
    measured: Path
    warm_up_spans: int
    spans: int

    @classmethod
    def made(cls, kind: str, folder: Path, effort: Effort) -> Load:
        """Make requests of a kind and write them."""
        spans: list[int] = []
        paths = (folder / f"{kind}-warm-up", folder / kind)
        for seed, count in enumerate((effort.warm_up, effort.requests)):
            made = batches(KINDS[kind], count, seed)
            hop_ends.write(paths[seed], (each.request for each in made))
            spans.append(sum(each.spans for each in made))
        return cls(*paths, *spans)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was measured of one contender, a value a round.

    Attributes:
        us: µs of CPU per span, by kind.
        held_bytes: memory per held span.
    """

    us: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    held_bytes: list[float] = field(default_factory=list)


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    effort = _QUICK if quick else _FULL
    names = list(CONTENDERS)
    taken = {name: Taken() for name in names}
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        loads = {kind: Load.made(kind, folder, effort) for kind in KINDS}
        for number in progress.rounds("hop", effort.rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                for kind, load in loads.items():
                    taken[name].us[kind].append(_cpu_us(CONTENDERS[name], load, folder))
                if name in HOLDING:
                    held = _held_bytes(CONTENDERS[name], loads["llm"], folder)
                    taken[name].held_bytes.append(held)
    return Report("hop", [_table(taken)], goals(taken))


def _cpu_us(command: Command, load: Load, folder: Path) -> float:
    """µs of CPU per span, from the first that is sent to the last that comes out."""
    with _standing(command, folder, _WAIT_S) as (process, at):
        _sent(load.warm_up, at)
        _come_out(load.warm_up_spans, process, at)
        before_s = process.cpu_s()
        _sent(load.measured, at)
        _come_out(load.warm_up_spans + load.spans, process, at)
        return (process.cpu_s() - before_s) * 1e6 / load.spans


def _held_bytes(command: Command, load: Load, folder: Path) -> float:
    """Memory per held span, beyond what the process has when it holds the first few."""
    with _standing(command, folder, _NEVER_S) as (process, at):
        _sent(load.warm_up, at)
        process.calm()
        before = process.resident_bytes()
        _sent(load.measured, at)
        process.calm()
        return (process.resident_bytes() - before) / load.spans


@contextmanager
def _standing(command: Command, folder: Path, wait_s: int) -> Iterator[tuple[Measured, Place]]:
    """A contender that listens, and the end behind it."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        at = Place(free_address(), free_address(), Path(own), wait_s)
        with started(_end("count", at.send), at.folder / "end.log") as end:
            end.listening(at.send)
            with started(command(at), at.folder / "middle.log") as process:
                process.listening(at.listen)
                yield process, at


def _end(*words: str) -> list[str]:
    return [sys.executable, "-m", "bench.hop_ends", *words]


def _sent(path: Path, at: Place) -> None:
    """Send a file of requests; it is there when all were taken over."""
    log = at.folder / "sender.log"
    with started(_end("send", at.listen, str(path)), log) as sender:
        sender.ended()


def _come_out(spans: int, process: Measured, at: Place) -> None:
    """Wait until so many spans have come to the end, and no more."""
    for _ in process.waiting(f"{spans:,} spans did not come out"):
        if hop_ends.counted(at.send) >= spans:
            return


def _table(taken: dict[str, Taken]) -> Table:
    rows: list[list[Cell]] = []
    for name, each in taken.items():
        held = median(each.held_bytes) if each.held_bytes else "-"
        us = [median(each.us[kind]) for kind in KINDS]
        rows.append([name, *(cell for one in us for cell in (one, round(1e6 / one))), held])
    columns = ["", *(f"{kind}, {what}" for kind in KINDS for what in ("µs", "spans/s"))]
    heading = "CPU per span and spans per CPU second, memory per held span in bytes; medians"
    return Table(heading, [*columns, "held"], rows)


def goals(taken: dict[str, Taken]) -> Sequence[Goal]:
    """What is to be reached, of what was taken of each contender."""
    ours, theirs = taken[OURS], taken[GROUPING]
    llm, plain = (_per_second(ours.us[kind]) for kind in ("llm", "plain"))
    floor = round(_per_second(theirs.us["llm"]))
    return [
        Goal("hop_llm", llm, floor, "/s", at_least=True),
        Goal("hop_llm_twice_groupbytrace", llm, _TWICE * floor, "/s", at_least=True),
        Goal("hop_plain", plain, _PLAIN_LIMIT, "/s", at_least=True),
        Goal("held_bytes", median(ours.held_bytes), _HELD_LIMIT_BYTES, "B"),
    ]


def _per_second(us: Sequence[float]) -> float:
    return 1e6 / median(us)
