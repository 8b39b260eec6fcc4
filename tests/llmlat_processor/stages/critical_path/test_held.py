"""Held: tokens existed for longer than the client was seen to receive them."""

from __future__ import annotations

import pytest

from llmlat_processor.model import Assumptions
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.cases.case_format import EXACT
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.critical_path.callers import served, tolerant
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    phase,
    row,
)


#   e      decode   ├───────────────────────────┤  60           tokens existed ...
#   c      wait ───────────────────────┤ stream ├──┤  20       ... and the client had none
def held(decode: float, **keys: object) -> Outcome:
    return explained(
        chat("c", None, 0, 100, stream=True, first_useful_content=80),
        phase(Phase.WAIT, "c", 0, 80),
        phase(Phase.STREAM, "c", 80, 100),
        *served(0, 30, decode),
        **keys,  # type: ignore[arg-type]
    )


def test_tokens_that_existed_while_the_client_had_none_were_held() -> None:
    found = held(60)
    assert findings(found) == ["stream_held of c 40"]
    assert amounts(found) == ["e prefill 30", "e decode 60", "c transit 10"]
    assert amounts(found, "ttft") == ["e prefill 30", "c held 40", "c transit 10"]


@pytest.mark.parametrize(
    ("decode", "assumptions", "said"),
    [
        (25, EXACT, []),
        (25.5, EXACT, ["stream_held of c 5.5"]),
        (25.5, tolerant(tail_ms=1), []),
        (25.5, tolerant(epsilon_ms=1), []),
        (27.5, tolerant(tail_ms=1, epsilon_ms=1), []),
        (28.5, tolerant(tail_ms=1, epsilon_ms=1), ["stream_held of c 8.5"]),
    ],
)
def test_a_stream_is_held_only_beyond_the_tolerance(
    decode: float, assumptions: Assumptions, said: list[str]
) -> None:
    assert findings(held(decode, assumptions=assumptions)) == said


def test_a_rejected_callee_holds_nothing() -> None:
    assert [line.split()[0] for line in findings(held(120))] == ["negative_transit"]


def test_a_report_holds_nothing() -> None:
    """Only a measured engine shows when tokens existed."""
    found = explained(
        chat("c", None, 0, 100, stream=True, reported={"prefill": 30, "decode": 60}),
        phase(Phase.WAIT, "c", 0, 80),
        phase(Phase.STREAM, "c", 80, 100),
    )
    assert findings(found) == []


def test_the_hop_that_held_the_stream_is_a_witness() -> None:
    def witnesses(hold_s: float) -> tuple[bytes, ...]:
        found = explained(
            chat("c", None, 0, 100, stream=True),
            phase(Phase.WAIT, "c", 0, 80),
            phase(Phase.STREAM, "c", 80, 100),
            row("g", "c", 0, 98, kind="server", host="edge", boundary="gateway",
                attributes={names.LLMLAT_RELAY_HOLD_SUM: hold_s}),
            row("up", "g", 0, 95, kind="client", host="edge", boundary="gateway"),
            engine("e", "up", 0, 90),
            phase(Phase.PREFILL, "e", 0, 30),
            phase(Phase.DECODE, "e", 30, 90),
        )  # fmt: skip
        (finding,) = found.explained.findings
        return finding.witnesses

    assert witnesses(0.04) == (b"c", b"e", b"g")
    assert witnesses(0) == (b"c", b"e")
