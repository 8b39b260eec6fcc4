"""What an operation's attributes and phase spans are taken to say, whatever type they have."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_processor.facts import Facts
from llmlat_processor.model import Attributes, AttributeValue
from llmlat_processor.phase_places import nanoseconds
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


def facts(said: Attributes, *phases: Json, start: float = 0) -> Facts:
    """Facts of an operation of 100 ms, on a clock that reads 0 at the start of the trace."""
    operation, *labels = spans(row("a", None, start, start + 100, attributes=said), *phases)
    starts_ns = [label.start_ns - EPOCH_NS for label in labels]
    return Facts(operation, operation.start_ns - EPOCH_NS, labels, starts_ns)


def labelled(*phases: Json) -> list[str]:
    """What the phases of an operation of 60 ms, the whole trace, label."""
    sections = placed(explained(row("a", None, 0, 60), *phases))
    return [line.removeprefix("a ") for line in sections if "unobserved" not in line]


# ── Durations ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, 10**9), (0.25, 250_000_000), (1e-9, 1), (1.0000000005, 1_000_000_000), (86_400.0, None)],
)
def test_seconds_become_whole_nanoseconds(seconds: float, said: int | None) -> None:
    assert nanoseconds(seconds) == (86_400 * 10**9 if said is None else said)


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_what_is_no_duration_is_none(value: AttributeValue) -> None:
    assert nanoseconds(value) is None


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
    assert facts({names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: value}).first_content_ns is None


def test_first_content_is_an_instant_on_the_operations_clock() -> None:
    found = facts({names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: 0.03}, start=20)
    assert found.first_content_ns == 50 * MS
    assert found.streamed


def test_consumer_is_an_amount_and_no_phase() -> None:
    found = facts({names.LLMLAT_CONSUMER_DURATION: 0.002})
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
    found = facts({names.GEN_AI_OPERATION_NAME: value, names.LLMLAT_BOUNDARY_NAME: value})
    assert (found.operation, found.boundary, found.is_inference) == ("", "", False)


@pytest.mark.parametrize("value", [True, 1.0, "1", [1], None], ids=repr)
def test_an_attempt_number_is_an_integer(value: AttributeValue) -> None:
    assert facts({names.LLMLAT_ATTEMPT_NUMBER: value}).attempt is None


@pytest.mark.parametrize(
    ("said", "cancelled"),
    [
        ({names.LLMLAT_ATTEMPT_OUTCOME: "cancelled"}, True),
        ({names.LLMLAT_STREAM_END: "cancelled"}, True),
        ({names.ERROR_TYPE: "asyncio.exceptions.CancelledError"}, True),
        ({names.ERROR_TYPE: "cancelled"}, True),
        ({names.ERROR_TYPE: "ValueError"}, False),
        ({names.LLMLAT_STREAM_END: "complete"}, False),
        ({}, False),
    ],
)
def test_who_was_cancelled(said: Attributes, cancelled: bool) -> None:
    assert facts(said).cancelled is cancelled


@pytest.mark.parametrize(
    "name",
    [names.LLMLAT_BOUNDARY_NAME, names.LLMLAT_CONTRACT_VERSION],
    ids=["boundary", "version"],
)
def test_a_span_of_ours_is_known_by_its_names(name: str) -> None:
    assert facts({name: "engine"}).ours
    assert not facts({names.GEN_AI_OPERATION_NAME: "chat"}).ours


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", "0", "engine", "", 1])
def test_a_version_of_our_contract_is_read(version: str) -> None:
    said: Attributes = {
        names.LLMLAT_CONTRACT_VERSION: version,
        duration_attribute(Phase.QUEUE): 0.05,
    }
    assert facts(said).total_ns(SectionLabel.QUEUE) == 50 * MS
    assert not facts(said).unread


@pytest.mark.parametrize("version", ["1.0.0", "2", "10.1"])
def test_of_another_major_version_nothing_is_read_and_that_is_counted(version: str) -> None:
    said: Attributes = {
        names.LLMLAT_CONTRACT_VERSION: version,
        names.LLMLAT_BOUNDARY_NAME: "engine",
        names.GEN_AI_OPERATION_NAME: "chat",
        duration_attribute(Phase.QUEUE): 0.05,
        duration_attribute(Phase.CONSUMER): 0.01,
        reported_duration_attribute(Phase.PREFILL): 0.02,
    }
    read = facts(said, phase(Phase.DECODE, "a", 0, 50))
    assert not any((read.ours, read.has_phases, read.reported, read.consumer_ns))
    assert (read.operation, read.unread) == ("chat", True)


# ── Phases with a position ───────────────────────────────────────────────────────────────────────


def test_a_phase_lasts_as_long_as_it_says_rather_than_its_stamps() -> None:
    """The duration comes from a monotonic clock; the span's end is a wall stamp."""
    said = {names.LLMLAT_PHASE_DURATION: 0.02}
    assert labelled(phase(Phase.QUEUE, "a", 10, 25, attributes=said)) == ["queue 10..30"]


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: repr(value)[:8])
def test_a_phase_whose_duration_cannot_be_read_lasts_as_its_stamps_say(
    value: AttributeValue,
) -> None:
    said = {names.LLMLAT_PHASE_DURATION: value}
    assert labelled(phase(Phase.QUEUE, "a", 10, 25, attributes=said)) == ["queue 10..25"]


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
    found = labelled(
        phase(Phase.PREFILL, "a", 20, 50),
        phase(Phase.DECODE, "a", 35, 45),
        phase(Phase.QUEUE, "a", 0, 30),
    )
    assert found == ["queue 0..30", "prefill 30..50"]


def test_a_phase_that_ends_before_it_starts_by_its_own_account_labels_nothing() -> None:
    said = {names.LLMLAT_PHASE_DURATION: 0.0}
    assert labelled(phase(Phase.QUEUE, "a", 10, 10, attributes=said)) == []


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
    found = facts({}, *(phase(name, "a", start, end) for name, start, end in phases))
    instants = [found.first_output_ns, found.last_output_ns]
    assert [None if at is None else at / MS for at in instants] == [first, last]
