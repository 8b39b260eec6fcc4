"""Spans of other producers as rows: what their attributes are called is in `aliases.yaml`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llmlat_semconv import attributes as names
from llmlat_semconv.aliases import SGLANG, VLLM, Producer, Surface
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import row

REQUEST: Final = " Req 1a2b"
"""A request of SGLang's."""


def key_of(producer: Producer, meaning: Phase | str) -> str:
    """The attribute under which a producer tells a phase, an instant or an attribute of ours."""
    return next(
        alias.key
        for alias in producer.on(Surface.SPAN_ATTRIBUTE)
        if meaning in (alias.phase, alias.instant or None, alias.attribute or None)
    )


QUEUE: Final = key_of(VLLM, Phase.QUEUE)
PREFILL: Final = key_of(VLLM, Phase.PREFILL)
DECODE: Final = key_of(VLLM, Phase.DECODE)
FIRST_OUTPUT: Final = key_of(VLLM, "first_output")
REQUEST_ID: Final = key_of(VLLM, names.LLMLAT_REQUEST_ID)


def llm_request(parent: str | None, start: float, end: float, **keys: Any) -> Json:
    """VLLM's span; `said` are its attributes, durations in milliseconds."""
    said = {
        key: value / 1_000 if isinstance(value, (int, float)) else value
        for key, value in keys.pop("said", {}).items()
    }
    has = {VLLM.operations[0].has: (end - start) / 1_000, **said}
    keys = {"kind": "server", "host": "gpu", "scope": VLLM.scopes[0].name, **keys}
    return row(VLLM.operations[0].name, parent, start, end, attributes=has, **keys)


def sglang(
    parent: str | None, start: float, end: float, events: Sequence[Json] = (), **keys: Any
) -> list[Json]:
    """SGLang's request, and the thread of its scheduler that has these events."""
    name = {"name": keys.pop("name", REQUEST)}
    keys = {"host": "gpu", "scope": SGLANG.scopes[0].name, **keys}
    rid, label = SGLANG.operations[0].has, SGLANG.containers[0].has
    return [
        {**row(REQUEST, parent, start, end, attributes={rid: "1a2b"}, **keys), **name},
        row(
            "Scheduler", REQUEST, start, end, attributes={label: "Scheduler"}, events=events, **keys
        ),
    ]


def stage(name: str, start: float, end: float, parent: str = "Scheduler", **keys: Any) -> Json:
    """One of its stages."""
    keys = {"host": "gpu", "scope": SGLANG.scopes[0].name, **keys}
    return row(name, parent, start, end, **keys)
