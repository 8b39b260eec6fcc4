"""The lane: which spans it consists of, where they stand, what they say and point to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from llmlat_processor.model import (
    INTERNAL,
    Annotation,
    Assumptions,
    AttributeValue,
    ExplainedTrace,
    Path,
    Resource,
    Section,
    Span,
)
from llmlat_processor.pipeline import process
from llmlat_processor.views.lane import FIRST_CONTENT, LISTED, SHOWN, entries, lane, select
from llmlat_processor.written import OWN_SCOPE, cut
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, critical_path_duration_attribute
from llmlat_semconv.values import Evidence, SectionLabel
from llmlat_semconv.version import CONTRACT_VERSION
from tests.llmlat_processor.adviser import (
    APP,
    MS,
    START_NS,
    TRACE_ID,
    adviser_spans,
    phase,
    resource,
    span,
)

ROOT_ID = (1).to_bytes(8, "big")


def explained(spans: Sequence[Span] = ()) -> ExplainedTrace:
    return process(spans or adviser_spans(), Assumptions(resolution_ns=0))


def rows(spans: Sequence[Span]) -> list[tuple[str, float, float]]:
    """Name, start and duration in ms from the start."""
    return [(s.name, (s.start_ns - START_NS) / MS, s.duration_ns / MS) for s in spans]


def test_sections_stand_in_time_order_on_the_clock_of_the_root() -> None:
    """The engine's own clock is 7 s ahead; its phases stand where durations put them."""
    _, *sections = lane(explained())

    assert rows(sections)[:10] == [
        ("unobserved adviser", 0, 20),
        ("retrieval adviser", 20, 200),
        ("unobserved adviser", 220, 20),
        ("send adviser", 240, 10),
        ("queue vllm", 250, 150),
        ("prefill vllm", 400, 180),
        ("decode vllm", 580, 210),
        ("transit adviser", 790, 30),
        ("finalize adviser", 820, 20),
        ("tool get_orders", 840, 260),
    ]


def test_its_root_is_a_nanosecond_under_the_trace_root() -> None:
    root, *sections = lane(explained())

    assert (root.name, root.kind, root.parent_id) == ("critical path", INTERNAL, ROOT_ID)
    assert (root.start_ns, root.end_ns) == (START_NS, START_NS + 1)
    assert {section.parent_id for section in sections} == {root.span_id}
    assert {drawn.trace_id for drawn in (root, *sections)} == {TRACE_ID}


def test_it_is_a_service_of_its_own_on_the_host_of_the_root() -> None:
    for drawn in lane(explained()):
        assert drawn.resource.attributes == {
            names.SERVICE_NAME: "~critical path",
            names.HOST_ID: "laptop",
        }


def test_without_a_host_it_names_none() -> None:
    nowhere = Resource({}, service="app", process="app", domain="app", weak=True)
    root, *_ = lane(explained([span(1, 0, "task", 0, 10, nowhere)]))

    assert root.resource.attributes == {names.SERVICE_NAME: "~critical path"}


def test_it_bears_the_scope_whose_spans_the_stages_leave_alone() -> None:
    before = explained()
    drawn = lane(before)
    assert {each.scope for each in drawn} == {OWN_SCOPE}

    after = explained([*adviser_spans(), *drawn])

    assert after.paths.roots[0].e2e.totals_ns == before.paths.roots[0].e2e.totals_ns
    assert len(after.trace.operations) == len(before.trace.operations)


def test_a_section_points_to_the_phase_that_labels_its_time_else_to_its_operation() -> None:
    _, *sections = lane(explained())

    targets = {s.name: [link.span_id[-1] for link in s.links] for s in sections[:10]}
    assert targets == {
        "unobserved adviser": [1],
        "retrieval adviser": [2],
        "send adviser": [11],
        "queue vllm": [16],
        "prefill vllm": [17],
        "decode vllm": [18],
        "transit adviser": [10],
        "finalize adviser": [14],
        "tool get_orders": [20],
    }
    assert {
        link.attributes[names.LLMLAT_LINK_RELATIONSHIP] for s in sections for link in s.links
    } == {"section_of"}


def test_of_two_phases_of_one_name_neither_is_pointed_to() -> None:
    spans = [
        span(1, 0, "chat", 0, 100),
        phase(2, 1, Phase.SEND, 0, 20),
        phase(3, 1, Phase.SEND, 40, 60),
    ]
    _, *sections = lane(explained(spans))

    sent = [s for s in sections if s.name == "send adviser"]
    assert [link.span_id for s in sent for link in s.links] == [ROOT_ID, ROOT_ID]


def test_no_span_without_a_parent_has_a_link() -> None:
    root, *sections = lane(explained())

    assert root.links == ()
    assert all(section.parent_id for section in sections)


def test_a_section_says_what_it_is() -> None:
    _, *sections = lane(explained())

    (queue,) = [s for s in sections if s.name == "queue vllm"]
    assert queue.attributes == {
        names.LLMLAT_SECTION_LABEL: "queue",
        names.LLMLAT_SECTION_DURATION: 0.15,
        names.LLMLAT_SECTION_SHARE: 0.075,
        names.LLMLAT_SECTION_EVIDENCE: "measured",
        names.LLMLAT_TRACE_ROOT_SERVICE: "adviser",
        names.LLMLAT_TRACE_ROOT_NAME: "invoke_agent adviser",
    }


OF_THE_OPERATION = {
    names.LLMLAT_CRITICAL_PATH_IS_ON_PATH,
    names.LLMLAT_CRITICAL_PATH_SELF_TIME,
    names.LLMLAT_CRITICAL_PATH_SHARE,
    names.LLMLAT_TTFT_PATH_IS_ON_PATH,
    names.LLMLAT_TTFT_PATH_SELF_TIME,
}


def test_its_root_says_of_the_trace_what_the_trace_root_says() -> None:
    trace = explained()
    root, *_ = lane(trace)

    said = trace.annotations[trace.paths.roots[0].root].attributes
    assert said.keys() & OF_THE_OPERATION == OF_THE_OPERATION
    assert not root.attributes.keys() & OF_THE_OPERATION
    of_the_trace = {key: value for key, value in said.items() if key not in OF_THE_OPERATION}
    assert of_the_trace.items() <= root.attributes.items()
    assert names.LLMLAT_TTFT_PATH_DURATION in of_the_trace
    assert critical_path_duration_attribute(SectionLabel.QUEUE) in of_the_trace


@pytest.mark.parametrize("is_ambiguous", [True, False])
def test_its_root_says_whether_the_clocks_allow_another_path(is_ambiguous: bool) -> None:
    trace = explained()
    root = trace.paths.roots[0].root
    said = {
        **trace.annotations[root].attributes,
        names.LLMLAT_CRITICAL_PATH_AMBIGUOUS: is_ambiguous,
    }
    told = replace(trace, annotations={**trace.annotations, root: Annotation(said)})

    drawn, *_ = lane(told)

    assert drawn.attributes[names.LLMLAT_CRITICAL_PATH_AMBIGUOUS] is is_ambiguous


def test_its_root_has_the_ledger_and_the_list_of_all_sections() -> None:
    root, *_ = lane(explained())

    listed = root.attributes[names.LLMLAT_CRITICAL_PATH_SECTIONS]
    assert isinstance(listed, tuple)
    assert listed[4] == f"queue 000000000000000f {START_NS + 250 * MS} {150 * MS}"
    numbers: dict[str, AttributeValue] = {
        names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
        names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS: 18,
        names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS: 18,
        names.LLMLAT_CRITICAL_PATH_HIDDEN_DURATION: 0.0,
        names.LLMLAT_CRITICAL_PATH_TOTAL_WORK: 2.02,
        names.LLMLAT_CRITICAL_PATH_BUSY: 1.92,
        names.LLMLAT_CRITICAL_PATH_OVERLAPPED: 0.1,
    }
    assert numbers.items() <= root.attributes.items()
    assert names.LLMLAT_CRITICAL_PATH_RETRY_WASTE not in root.attributes


def test_the_first_useful_content_is_an_instant_with_a_summary() -> None:
    root, *_ = lane(explained())

    (event,) = root.events
    assert (event.name, event.at_ns) == (FIRST_CONTENT, START_NS + 620 * MS)
    summary = event.attributes[names.LLMLAT_TTFT_PATH_SUMMARY]
    assert summary == root.attributes[names.LLMLAT_TTFT_PATH_SUMMARY]


def test_without_content_there_is_no_such_instant() -> None:
    root, *_ = lane(explained([span(1, 0, "task", 0, 10)]))

    assert root.events == ()


def test_content_that_was_counted_on_another_clock_has_no_place_here() -> None:
    other = resource("worker", "elsewhere")
    chat = next(s for s in adviser_spans() if s.name == "chat gemma")
    spans = [
        span(1, 0, "task", 0, 3000),
        span(2, 1, "local step", 0, 10),
        span(3, 1, "local step", 20, 30),
        span(10, 1, chat.name, 240, 840, other, kind=chat.kind, attributes=chat.attributes),
    ]
    trace = explained(spans)
    ttft = trace.paths.roots[0].ttft
    assert ttft is not None
    assert ttft.root.span_id[-1] == 10

    root, *_ = lane(trace)

    assert root.events == ()
    assert root.attributes[names.LLMLAT_TTFT_PATH_DURATION] == 0.38


@pytest.mark.parametrize(("flags", "kept"), [(0x301, 1), (0x300, 0), (0x101, 1), (0, 0)])
def test_it_is_sampled_if_the_root_is(flags: int, kept: int) -> None:
    spans = adviser_spans()
    spans[0].flags = flags

    assert {drawn.flags for drawn in lane(explained(spans))} == {kept}


def test_every_root_has_a_lane_of_its_own() -> None:
    spans = [span(1, 0, "one", 0, 10), span(2, 0, "two", 5, 25)]
    drawn = lane(explained(spans))

    assert [(s.name, s.parent_id[-1]) for s in drawn if s.name == "critical path"] == [
        ("critical path", 1),
        ("critical path", 2),
    ]
    assert len({s.span_id for s in drawn}) == len(drawn) == 4


def test_under_a_missing_root_it_hangs_like_the_orphans_and_points_to_no_stand_in() -> None:
    absent = (9).to_bytes(8, "big")
    drawn = lane(explained([span(2, 9, "one", 0, 10), span(3, 9, "two", 15, 25)]))

    root, *sections = drawn
    assert root.parent_id == absent
    assert root.attributes[names.LLMLAT_CRITICAL_PATH_COMPLETE] is False
    named = {s.attributes[names.LLMLAT_SECTION_LABEL]: s.links for s in sections}
    assert named["unobserved"] == ()
    assert len(named["work"]) == 1


def test_a_root_without_length_has_a_lane_without_sections() -> None:
    (root,) = lane(explained([span(1, 0, "instant", 5, 5)]))

    assert root.duration_ns == 1
    assert root.attributes[names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS] == 0


def test_another_revision_is_another_lane_of_the_same_shape() -> None:
    first, second = lane(explained()), lane(explained(), revision=2)

    assert {s.span_id for s in first}.isdisjoint(s.span_id for s in second)
    assert rows(first) == rows(second)


def test_an_id_that_is_taken_is_not_used_again() -> None:
    drawn = lane(explained())
    thief = span(99, 1, "thief", 5, 6)
    thief.span_id = drawn[0].span_id

    again = lane(explained([*adviser_spans(), thief]))

    ids = [s.span_id for s in again]
    assert thief.span_id not in ids
    assert len(set(ids)) == len(ids)


# ── Many sections ────────────────────────────────────────────────────────────────────────────────


def path(sizes: Sequence[int], *, operations: int = 1) -> Path:
    """Sections of these lengths, one after the other, of so many operations in turn."""
    of = [span(number + 2, 1, f"step {number}", 0, 1) for number in range(operations)]
    sections, at_ns = [], START_NS
    for number, size in enumerate(sizes):
        where = of[number % operations]
        sections.append(Section(where, SectionLabel.WORK, size, Evidence.DERIVED, at_ns))
        at_ns += size
    return Path(span(1, 0, "root", 0, 1, APP), tuple(sections))


def test_the_longest_sections_are_drawn_in_time_order() -> None:
    sizes = [100, 300] * 15
    chosen = select(path(sizes))

    starts = [section.start_ns for section in chosen.shown]
    assert len(starts) == SHOWN
    assert starts == sorted(starts)
    assert [s.duration_ns for s in chosen.shown].count(300) == 15
    assert chosen.hidden_ns == 100 * 10


@pytest.mark.parametrize(("smallest", "shown"), [(5, 2), (4, 1)])
def test_what_is_shorter_than_half_a_percent_is_not_drawn(smallest: int, shown: int) -> None:
    chosen = select(path([1000 - smallest, smallest]))

    assert len(chosen.shown) == shown
    assert chosen.hidden_ns == (0 if shown == 2 else smallest)


def test_up_to_the_limit_every_section_is_listed() -> None:
    listed = entries(path([7] * LISTED))

    assert len(listed) == LISTED


@pytest.mark.parametrize("operations", [1, 60, 5_000])
def test_beyond_it_the_shorter_ones_are_put_together_and_nothing_is_lost(operations: int) -> None:
    many = path([1 + number % 97 for number in range(10_000)], operations=operations)
    listed = entries(many)

    assert len(listed) <= LISTED
    assert sum(entry.duration_ns for entry in listed) == many.duration_ns
    assert listed == sorted(listed)


# ── Texts ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("character", ["a", "é", "语", "🙂"])
def test_texts_are_cut_on_a_character_border(character: str) -> None:
    whole = character * 3_000
    size = len(cut(whole).encode())

    assert whole.startswith(cut(whole))
    assert 1_990 < size < 2_000


def test_short_texts_are_left_alone() -> None:
    assert cut("é" * 999) == "é" * 999


def test_names_from_outside_are_cut_too() -> None:
    endless = resource("s" * 5_000, "h" * 5_000)
    root, *sections = lane(explained([span(1, 0, "n" * 5_000, 0, 10, endless)]))

    texts = [
        value
        for drawn in (root, *sections)
        for value in (drawn.name, *drawn.attributes.values(), *drawn.resource.attributes.values())
        if isinstance(value, str)
    ]
    assert max(len(text) for text in texts) == 1_999
