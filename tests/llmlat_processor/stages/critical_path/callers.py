"""A caller and an engine whose accounts the tests of the exchange vary."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.model import Assumptions
from llmlat_semconv.phases import Phase
from tests.cases.case_format import EXACT, Json
from tests.llmlat_processor.stages.spans import (
    MS,
    chat,
    engine,
    phase,
)

#   c          ├──────────────────────────────────────────────┤
#   send       ██          wait    ▒▒▒▒▒▒▒▒   stream ▒▒▒▒▒▒▒▒▒    finalize ██
#              0 10                10     60          60    90             90 100
CALLER = (
    chat("c", None, 0, 100, stream=True, first_useful_content=60),
    phase(Phase.SEND, "c", 0, 10),
    phase(Phase.WAIT, "c", 10, 60),
    phase(Phase.STREAM, "c", 60, 90),
    phase(Phase.FINALIZE, "c", 90, 100),
)


def served(
    queue: float, prefill: float, decode: float, ahead: float = 7_000, **keys: object
) -> list[Json]:
    """An engine's account, on a clock of its own unless told otherwise."""
    stamps = [ahead, ahead + queue, ahead + queue + prefill, ahead + queue + prefill + decode]
    labels = zip((Phase.QUEUE, Phase.PREFILL, Phase.DECODE), stamps, stamps[1:], strict=False)
    operation = engine("e", "c", stamps[0], stamps[-1], **keys)
    return [operation, *(phase(name, "e", start, end) for name, start, end in labels)]


def tolerant(tail_ms: float = 0, epsilon_ms: float = 0) -> Assumptions:
    return replace(EXACT, tail_ns=round(tail_ms * MS), resolution_ns=round(epsilon_ms * MS))
