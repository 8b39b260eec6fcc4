"""What an operation's attributes and phase spans are taken to say, whatever type they have."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_processor.model import AttributeValue
from llmlat_processor.stages.critical_path.facts import Facts, nanoseconds
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    Phase,
    duration_attribute,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.values import Evidence, SectionLabel
from tests.cases.case_format import EPOCH_NS, Json
from tests.llmlat_processor.stages.spans import MS, explained, findings, phase, placed, row, spans

NO_DURATIONS = [True, float("nan"), float("inf"), 1e300, 10**400, -1.0, "1", b"1", [1.0], None]
"""Values that are no duration, though some of them are numbers."""


def facts(*phases: Json, start: float = 0, **attributes: AttributeValue) -> Facts:
    """Facts of an operation of 100 ms that starts at 0, with attributes by constant."""
    said = {getattr(names, key): value for key, value in attributes.items()}
    operation, *labels = spans(row("a", None, start, start + 100, attributes=said), *phases)
    starts_ns = [label.start_ns - EPOCH_NS for label in labels]
    return Facts(operation, operation.start_ns - EPOCH_NS, labels, starts_ns)


def intervals(found: list[Any]) -> list[str]:
    return [f"{i.label.value} {i.start_ns / MS:g}..{i.end_ns / MS:g}" for i in found]


# ── Durations ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, 10**9), (0.25, 250_000_000), (1e-9, 1), (1.0000000005, 1_000_000_000), (86_400.0, None)],
)
def test_seconds_become_whole_nanoseconds(seconds: float, said: int | None) -> None:
    assert nanoseconds(seconds) == (86_400 * 10**9 if said is None else said)


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_what_is_no_duration_is_none(value: AttributeValue) -> None:
    assert nanoseconds(value) == 0


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_a_phase_whose_duration_cannot_be_read_was_not_recorded(value: AttributeValue) -> None:
    """A leaf for which no phase was recorded is work."""
    said = {duration_attribute(Phase.QUEUE): value}
    outcome = explained(row("a", None, 0, 10, attributes=said))
    assert placed(outcome) == ["a work 0..10"]
    assert findings(outcome) == []


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_a_report_that_cannot_be_read_makes_no_callee(value: AttributeValue) -> None:
    said = {reported_duration_attribute(Phase.PREFILL): value}
    outcome = explained(row("a", None, 0, 10, attributes=said))
    assert placed(outcome) == ["a work 0..10"]


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_a_first_content_that_cannot_be_read_was_not_seen(value: AttributeValue) -> None:
    """Absence beats a guess: a milestone that was never reached is absent, never the start."""
    assert facts(LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT=value).first_content_ns is None


def test_first_content_is_an_instant_on_the_operations_clock() -> None:
    found = facts(start=20, LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT=0.03)
    assert found.first_content_ns == 50 * MS
    assert found.streamed


def test_consumer_is_an_amount_and_no_phase() -> None:
    found = facts(LLMLAT_CONSUMER_DURATION=0.002)
    assert (found.consumer_ns, found.durations, found.has_phases) == (2 * MS, {}, False)


def test_reported_durations_are_kept_apart_with_their_evidence() -> None:
    said: dict[str, AttributeValue] = {
        reported_duration_attribute(Phase.QUEUE): 0.01,
        reported_evidence_attribute(Phase.QUEUE): Evidence.BOUNDED.value,
        reported_duration_attribute(Phase.PREFILL): 0.02,
        reported_evidence_attribute(Phase.PREFILL): "nonsense",
    }
    (operation,) = spans(row("a", None, 0, 100, attributes=said))
    assert Facts(operation, 0, (), ()).reported == {
        SectionLabel.QUEUE: (10 * MS, Evidence.BOUNDED),
        SectionLabel.PREFILL: (20 * MS, Evidence.REPORTED),
    }


# ── Identity ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [7, True, ["chat"], b"chat", None], ids=repr)
def test_an_operation_name_that_is_no_text_is_none(value: AttributeValue) -> None:
    found = facts(GEN_AI_OPERATION_NAME=value, LLMLAT_BOUNDARY_NAME=value)
    assert (found.operation, found.boundary, found.is_inference) == ("", "", False)


@pytest.mark.parametrize("value", [True, 1.0, "1", [1], None], ids=repr)
def test_an_attempt_number_is_an_integer(value: AttributeValue) -> None:
    assert facts(LLMLAT_ATTEMPT_NUMBER=value).attempt is None


@pytest.mark.parametrize(
    ("attributes", "cancelled"),
    [
        ({"LLMLAT_ATTEMPT_OUTCOME": "cancelled"}, True),
        ({"LLMLAT_STREAM_END": "cancelled"}, True),
        ({"ERROR_TYPE": "asyncio.exceptions.CancelledError"}, True),
        ({"ERROR_TYPE": "cancelled"}, True),
        ({"ERROR_TYPE": "ValueError"}, False),
        ({"LLMLAT_STREAM_END": "complete"}, False),
        ({}, False),
    ],
)
def test_who_was_cancelled(attributes: dict[str, AttributeValue], cancelled: bool) -> None:
    assert facts(**attributes).cancelled is cancelled


@pytest.mark.parametrize(
    "name", ["LLMLAT_BOUNDARY_NAME", "LLMLAT_CONTRACT_VERSION"], ids=["boundary", "version"]
)
def test_a_span_of_ours_is_known_by_its_names(name: str) -> None:
    assert facts(**{name: "engine"}).ours
    assert not facts(GEN_AI_OPERATION_NAME="chat").ours


# ── Phases with a position ───────────────────────────────────────────────────────────────────────


def test_a_phase_lasts_as_long_as_it_says_rather_than_its_stamps() -> None:
    """The duration comes from a monotonic clock; the span's end is a wall stamp."""
    said = {names.LLMLAT_PHASE_DURATION: 0.02}
    found = facts(phase(Phase.QUEUE, "a", 10, 25, attributes=said))
    assert intervals(found.outer) == ["queue 10..30"]


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_a_phase_whose_duration_cannot_be_read_lasts_as_its_stamps_say(
    value: AttributeValue,
) -> None:
    said = {names.LLMLAT_PHASE_DURATION: value}
    found = facts(phase(Phase.QUEUE, "a", 10, 25, attributes=said))
    assert intervals(found.outer) == ["queue 10..25"]


@pytest.mark.parametrize("name", ["a later contract's phase", 7, None, ["queue"]], ids=repr)
def test_a_phase_that_the_contract_does_not_know_labels_nothing(name: Any) -> None:
    said = {names.LLMLAT_PHASE_NAME: name}
    unknown = row("p", "a", 2, 8, attributes=said)
    outcome = explained(row("a", None, 0, 10, op="chat"), phase(Phase.WAIT, "a", 0, 2), unknown)
    assert placed(outcome) == ["a wait 0..2", "a unobserved 2..10"]


#   queue    ├────────────┤
#   prefill         ├──────────┤         begins before queue is over: the earlier one stays
#   decode             ├─┤               lies in prefill: dropped
def test_where_phases_overlap_the_earlier_one_stays() -> None:
    found = facts(
        phase(Phase.PREFILL, "a", 20, 50),
        phase(Phase.DECODE, "a", 35, 45),
        phase(Phase.QUEUE, "a", 0, 30),
    )
    assert intervals(found.outer) == ["queue 0..30", "prefill 30..50"]


def test_nested_phases_lie_apart_from_those_that_hold_them() -> None:
    found = facts(phase(Phase.QUEUE, "a", 0, 30), phase(Phase.KV_TRANSFER, "a", 10, 20))
    assert intervals(found.outer) == ["queue 0..30"]
    assert intervals(found.nested) == ["kv_transfer 10..20"]


@pytest.mark.parametrize(
    ("phases", "first", "last"),
    [
        ([(Phase.PREFILL, 0, 20), (Phase.DECODE, 20, 50)], 20, 50),
        ([(Phase.PREFILL, 0, 20), (Phase.DECODE, 20, 50), (Phase.DETOKENIZE, 50, 60)], 20, 60),
        ([(Phase.UPSTREAM, 0, 20), (Phase.UPSTREAM_STREAM, 20, 50)], 20, None),
        ([(Phase.UPSTREAM, 0, 20), (Phase.RELAY, 50, 55)], 20, 55),
        ([(Phase.PREFILL, 0, 10), (Phase.PREFILL, 30, 40)], 40, None),
        ([(Phase.QUEUE, 0, 20)], None, None),
    ],
    ids=[
        "engine",
        "with detokenize",
        "gateway whose relay was too short",
        "gateway",
        "prefill in two chunks",
        "queue alone",
    ],
)
def test_which_edges_are_first_and_last_output(
    phases: list[tuple[Phase, float, float]], first: float | None, last: float | None
) -> None:
    found = facts(*(phase(name, "a", start, end) for name, start, end in phases))
    instants = [found.first_output_ns, found.last_output_ns]
    assert [None if at is None else at / MS for at in instants] == [first, last]
