"""What is written back: names, types, units, and that nothing received is touched."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from llmlat_processor.model import (
    Attributes,
    AttributeValue,
    Event,
    Path,
    Resource,
    Section,
    Span,
)
from llmlat_processor.stages.annotate import summary
from llmlat_processor.written import MOST_TEXT_BYTES, seconds
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.phases import (
    Phase,
    critical_path_duration_attribute,
    finding_attribute,
    ttft_path_duration_attribute,
)
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel
from llmlat_semconv.version import CONTRACT_VERSION
from tests.cases.case_format import EPOCH_NS
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import (
    MS,
    engine,
    explained,
    link,
    outcome_of,
    phase,
    row,
    span_named,
    spans,
)


def added(outcome: Outcome, name: str) -> Attributes:
    """What was added to an operation; nothing where nothing was."""
    annotation = outcome.explained.annotations.get(span_named(outcome, name))
    return annotation.attributes if annotation is not None else {}


def added_events(outcome: Outcome, name: str) -> list[Event]:
    annotation = outcome.explained.annotations.get(span_named(outcome, name))
    return list(annotation.events) if annotation is not None else []


def under(prefix: str, attributes: Attributes) -> Mapping[str, AttributeValue]:
    return {key: value for key, value in attributes.items() if key.startswith(prefix)}


PATH = names.LLMLAT_CRITICAL_PATH_IS_ON_PATH.removesuffix("is_on_path")
TTFT = names.LLMLAT_TTFT_PATH_IS_ON_PATH.removesuffix("is_on_path")

#   R      ├──────────────────────────────┤      0 .. 1000 ms
#   c        ├────▼─────────────────┤            100 .. 900, first content at 300
#   hidden   ├────────────┤                      100 .. 500
#   late                             ├─────╌╌    outlives R
TRACE = explained(
    row("R", None, 0, 1000),
    row("c", "R", 100, 900, op="chat", stream=True, first_useful_content=300),
    row("hidden", "R", 100, 500),
    row("late", "R", 950, 1500),
)

# ── Operations ───────────────────────────────────────────────────────────────────────────────────


def test_an_operation_on_the_path_learns_its_own_time_and_its_share() -> None:
    assert under(PATH, added(TRACE, "c")) == {
        names.LLMLAT_CRITICAL_PATH_IS_ON_PATH: True,
        names.LLMLAT_CRITICAL_PATH_SELF_TIME: 0.8,
        names.LLMLAT_CRITICAL_PATH_SHARE: 0.8,
    }
    assert under(TTFT, added(TRACE, "c")) == {
        names.LLMLAT_TTFT_PATH_IS_ON_PATH: True,
        names.LLMLAT_TTFT_PATH_SELF_TIME: 0.2,
    }


def test_an_operation_off_the_path_learns_its_slack_and_nothing_else() -> None:
    assert added(TRACE, "hidden") == {names.LLMLAT_CRITICAL_PATH_SLACK: 0.4}


def test_an_operation_that_nobody_waited_for_learns_nothing() -> None:
    assert added(TRACE, "late") == {}


def test_a_path_without_any_length_has_no_shares_to_divide() -> None:
    outcome = explained(row("R", None, 5, 5))
    assert added(outcome, "R")[names.LLMLAT_CRITICAL_PATH_SHARE] == 0.0
    assert names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE not in added(outcome, "R")


# ── Roots ────────────────────────────────────────────────────────────────────────────────────────


def test_a_root_learns_both_paths_what_they_rest_on_and_what_was_found() -> None:
    assert added(TRACE, "R") == {
        names.LLMLAT_CRITICAL_PATH_IS_ON_PATH: True,
        names.LLMLAT_CRITICAL_PATH_SELF_TIME: 0.2,
        names.LLMLAT_CRITICAL_PATH_SHARE: 0.2,
        names.LLMLAT_CRITICAL_PATH_ALGORITHM: f"llmlat/{CONTRACT_VERSION}",
        names.LLMLAT_CRITICAL_PATH_COMPLETE: True,
        names.LLMLAT_CRITICAL_PATH_AMBIGUOUS: False,
        names.LLMLAT_CRITICAL_PATH_EPSILON: 0.0,
        names.LLMLAT_CRITICAL_PATH_TAIL: 0.0,
        names.LLMLAT_CRITICAL_PATH_DURATION: 1.0,
        names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE: "work",
        names.LLMLAT_CRITICAL_PATH_SUMMARY: "work svc 0.8 s (80 %), unobserved svc 0.2 s (20 %)",
        critical_path_duration_attribute(SectionLabel.WORK): 0.8,
        critical_path_duration_attribute(SectionLabel.UNOBSERVED): 0.2,
        names.LLMLAT_TTFT_PATH_IS_ON_PATH: True,
        names.LLMLAT_TTFT_PATH_SELF_TIME: 0.1,
        names.LLMLAT_TTFT_PATH_AMBIGUOUS: False,
        names.LLMLAT_TTFT_PATH_DURATION: 0.3,
        names.LLMLAT_TTFT_PATH_DOMINANT_PHASE: "work",
        names.LLMLAT_TTFT_PATH_SUMMARY: "work svc 0.2 s (67 %), unobserved svc 0.1 s (33 %)",
        ttft_path_duration_attribute(SectionLabel.WORK): 0.2,
        ttft_path_duration_attribute(SectionLabel.UNOBSERVED): 0.1,
        finding_attribute(FindingKind.OUTLIVED_PARENT): True,
    }


def test_what_is_added_has_the_types_that_otlp_knows() -> None:
    for annotation in TRACE.explained.annotations.values():
        for value in annotation.attributes.values():
            assert type(value) in {bool, float, str}


def test_a_root_without_content_learns_why() -> None:
    outcome = explained(row("R", None, 0, 10))
    assert under(TTFT, added(outcome, "R")) == {
        names.LLMLAT_TTFT_PATH_ABSENT_REASON: "no_inference"
    }


def test_a_path_that_counts_from_another_domain_names_its_first_span() -> None:
    outcome = explained(
        row("R", None, 0, 100),
        row("far", "R", 70, 90, host="B", op="chat", stream=True, first_useful_content=80),
    )
    assert added(outcome, "R")[names.LLMLAT_TTFT_PATH_ROOT] == b"far".hex()


def test_an_incomplete_trace_says_so_on_its_root() -> None:
    outcome = explained(row("R", None, 0, 10), row("a", "gone", 1, 2))
    assert added(outcome, "R")[names.LLMLAT_CRITICAL_PATH_COMPLETE] is False


def test_two_roots_learn_of_their_own_path_each() -> None:
    outcome = explained(row("R", None, 0, 10), row("S", None, 0, 30))
    durations = [added(outcome, name)[names.LLMLAT_CRITICAL_PATH_DURATION] for name in "RS"]
    assert durations == [0.01, 0.03]


# ── Findings ─────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_is_an_event_on_every_witness() -> None:
    expected = {
        names.LLMLAT_FINDING_KIND: "outlived_parent",
        names.LLMLAT_FINDING_AMOUNT: 0.5,
        names.LLMLAT_FINDING_WITNESSES: [b"late".hex(), b"R".hex()],
    }
    for name, at_ms in (("late", 950), ("R", 0)):
        (event,) = added_events(TRACE, name)
        assert (event.name, event.at_ns) == (events.LLMLAT_FINDING, EPOCH_NS + at_ms * MS)
        assert event.attributes == expected


def test_a_finding_states_the_tolerance_that_was_granted() -> None:
    outcome = explained(row("c", None, 0, 10, kind="client", rpc=True), engine("e", "c", 0, 30))
    (event,) = added_events(outcome, "e")
    assert event.attributes[names.LLMLAT_FINDING_AMOUNT] == -0.02
    assert event.attributes[names.LLMLAT_FINDING_EPSILON] == 0.0


def test_a_damaged_span_witnesses_its_own_damage() -> None:
    made = spans(row("R", None, 0, 10), row("x", "R", 5, 3))
    annotation = outcome_of(made).explained.annotations[made[1]]
    (event,) = annotation.events
    assert event.attributes[names.LLMLAT_FINDING_KIND] == "negative_duration"
    assert annotation.attributes == {}


def test_what_findings_add_grows_with_the_trace_and_not_with_its_square() -> None:
    """A circle of spans has all of its members as witnesses, each of which gets the event."""

    def ids_written(length: int) -> int:
        circle = [row(f"s{i}", f"s{(i + 1) % length}", 1, 2) for i in range(length)]
        outcome = explained(row("R", None, 0, 10), *circle)
        written = 0
        for annotation in outcome.explained.annotations.values():
            for event in annotation.events:
                witnesses = event.attributes[names.LLMLAT_FINDING_WITNESSES]
                assert isinstance(witnesses, list)
                written += len(witnesses)
        return written

    assert ids_written(400) <= 5 * ids_written(100)


# ── Nothing received is changed ──────────────────────────────────────────────────────────────────


def _plain(span: Span) -> object:
    return (span.start_ns, span.end_ns, span.name, span.parent_id, span.attributes, span.raw)


def test_no_stamp_and_no_attribute_of_a_span_changes() -> None:
    made = spans(
        row("R", None, 10, 100),
        row("early", "R", 5, 20),
        row("late", "R", 90, 150),
        row("c", "R", 30, 60, kind="client"),
        engine("e", "c", 5_000, 5_100),
        phase(Phase.DECODE, "e", 5_010, 5_100, host="gpu"),
        links=[link("late", "early")],
    )
    before = [_plain(span) for span in made]
    outcome_of(made)
    assert [_plain(span) for span in made] == before


# ── How it reads ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("duration_ns", "said"),
    [(0, 0.0), (499, 0.0), (1_499, 0.000001), (1_500, 0.000002), (6_400_000_000, 6.4)],
)
def test_durations_leave_as_seconds_rounded_to_the_microsecond(
    duration_ns: int, said: float
) -> None:
    assert seconds(duration_ns) == said


def path_of(*shares: tuple[str, int]) -> Path:
    """A path of as many services, each with some nanoseconds of decode."""
    sections = []
    for number, (service, duration_ns) in enumerate(shares):
        there = Resource({}, service=service, process=service, domain=service, weak=False)
        span = Span(b"t", bytes([number]), b"", "s", 1, 0, duration_ns, there)
        sections.append(Section(span, SectionLabel.DECODE, duration_ns, Evidence.MEASURED, 0))
    return Path(sections[0].span, tuple(sections))


@pytest.mark.parametrize(
    ("duration_ns", "said"),
    [
        (1_000, "0.001 ms"),
        (1_234_000, "1.2 ms"),
        (92_000_000, "92 ms"),
        (99_400_000, "99 ms"),
        (99_600_000, "100 ms"),
        (100_000_000, "0.1 s"),
        (3_444_000_000, "3.4 s"),
        (99_700_000_000, "100 s"),
        (4_321_000_000_000, "4321 s"),
    ],
)
def test_a_summary_rounds_to_two_digits_and_writes_no_exponent(duration_ns: int, said: str) -> None:
    assert summary(path_of(("vllm", duration_ns))) == f"decode vllm {said} (100 %)"


def test_a_summary_names_the_largest_first() -> None:
    text = summary(path_of(("a", 10 * MS), ("b", 30 * MS)))
    assert text == "decode b 30 ms (75 %), decode a 10 ms (25 %)"


@pytest.mark.parametrize("letter", ["x", "ü", "日", "🜁"])
def test_a_long_summary_is_cut_on_the_border_of_a_character(letter: str) -> None:
    for shift in range(4):
        text = summary(path_of(("s" * shift + letter * 3_000, MS)))
        assert MOST_TEXT_BYTES - 4 < len(text.encode()) <= MOST_TEXT_BYTES
        assert text == f"decode {'s' * shift}{letter * 3_000}"[: len(text)]
