"""What holds for the critical paths of every trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from llmlat_processor.model import (
    Assumptions,
    AttributeValue,
    ExplainedTrace,
    Path,
    RootPaths,
    Span,
)
from llmlat_processor.pipeline import process
from llmlat_semconv import events
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import spans_of
from tests.properties.arbitrary import (
    NAMES,
    STRANGE_VALUES,
    arbitrary_spans,
    spans_that_hold,
)
from tests.properties.canonical import canonical, sections
from tests.properties.traces import (
    HOSTS,
    as_case_file,
    call_traces,
    damaged_traces,
    plain_traces,
)

ANY_TRACE = st.one_of(plain_traces(), call_traces(), damaged_traces())
ASSUMPTIONS = st.sampled_from((EXACT, Assumptions(), replace(EXACT, resolution_ns=1_000_000)))


def explained(case: Case, assumptions: Assumptions = EXACT) -> ExplainedTrace:
    note(as_case_file(case))
    return process(spans_of(case), assumptions)


def paths_of(root: RootPaths) -> Iterator[Path]:
    yield root.e2e
    if root.ttft is not None:
        yield root.ttft


def plain(name: str, parent: str | None, start: int, end: int, **keys: Any) -> Json:
    return {"id": name, "parent": parent, "start": start, "end": end, "host": HOSTS[0], **keys}


def case_of(*spans: Json) -> Case:
    return Case("example", "call", "ms", spans=spans)


# Children that start before their parent, or after it: found here once, and tried ever since.
STARTS_BEFORE_A_PARENT_THAT_IT_OUTLIVES = case_of(
    plain("R", None, 0, 10), plain("P", "R", 1, 1), plain("c", "P", 0, 2)
)
STARTS_AFTER_ITS_PARENT = case_of(
    plain("R", None, 0, 10), plain("P", "R", 0, 1), plain("c", "P", 3, 5)
)
SHOWS_CONTENT_BUT_STARTS_BEFORE_THE_ROOT = case_of(
    plain("R", None, 0, 10),
    plain("L", "R", -2, 5, op="chat", stream=True, first_useful_content=3),
)
SHOWS_CONTENT_BUT_STARTS_AFTER_ITS_PARENT = case_of(
    plain("R", None, 0, 10),
    plain("P", "R", 0, 1),
    plain("L", "P", 3, 9, op="chat", stream=True, first_useful_content=5),
)
ONLY_DAMAGED = case_of(plain("R", None, 0, -1))
ONE_ID_DAMAGED_TWICE = case_of(
    plain("R", None, 0, 10),
    plain("c", "R", 5, 1, kind="client"),
    plain("c", "R", 5, 1, kind="server"),
)


# ── Tiling ───────────────────────────────────────────────────────────────────────────────────────


@given(ANY_TRACE, ASSUMPTIONS)
@example(STARTS_BEFORE_A_PARENT_THAT_IT_OUTLIVES, EXACT)
@example(STARTS_AFTER_ITS_PARENT, EXACT)
@example(ONLY_DAMAGED, EXACT)
def test_sections_tile_each_path_from_its_start(case: Case, assumptions: Assumptions) -> None:
    outcome = explained(case, assumptions)
    for root in outcome.paths.roots:
        for path in paths_of(root):
            assert all(section.duration_ns > 0 for section in path.sections)
            for before, after in pairwise(path.sections):
                assert after.start_ns == before.start_ns + before.duration_ns
            for first in path.sections[:1]:
                assert first.start_ns == path.root.start_ns


@given(ANY_TRACE, ASSUMPTIONS)
@example(STARTS_BEFORE_A_PARENT_THAT_IT_OUTLIVES, EXACT)
@example(STARTS_AFTER_ITS_PARENT, EXACT)
def test_the_end_to_end_path_is_as_long_as_its_root(case: Case, assumptions: Assumptions) -> None:
    for root in explained(case, assumptions).paths.roots:
        assert root.e2e.root is root.root
        assert root.e2e.duration_ns == root.root.duration_ns


@given(st.one_of(plain_traces(), call_traces()))
@example(SHOWS_CONTENT_BUT_STARTS_BEFORE_THE_ROOT)
@example(SHOWS_CONTENT_BUT_STARTS_AFTER_ITS_PARENT)
def test_the_path_to_first_content_ends_at_a_first_content(case: Case) -> None:
    here = [span for span in case.spans if span["host"] == HOSTS[0]]
    sinks = {span["first_useful_content"] for span in here if "first_useful_content" in span}
    sinks |= {e["at"] for e in _events(here) if e["name"] == events.LLMLAT_FIRST_CONTENT}
    for root in explained(case).paths.roots:
        if root.ttft is not None and not _is_elsewhere(root.ttft, case):
            sink_ns = root.root.start_ns + root.ttft.duration_ns
            assert sink_ns in {case.instant_ns(sink) for sink in sinks}


def _events(spans: list[Json]) -> Iterator[Json]:
    return (event for span in spans for event in span.get("events", ()))


def _is_elsewhere(path: Path, case: Case) -> bool:
    """A sink on another clock counts from that clock's first span on the climb."""
    return any(section.span.resource.process != HOSTS[0] for section in path.sections) or any(
        span["host"] != HOSTS[0] for span in case.spans if "first_useful_content" in span
    )


@given(ANY_TRACE)
@example(STARTS_AFTER_ITS_PARENT)
@example(STARTS_BEFORE_A_PARENT_THAT_IT_OUTLIVES)
def test_no_operation_answers_for_more_than_it_lasted(case: Case) -> None:
    for root in explained(case).paths.roots:
        for span, self_time_ns in root.self_times_ns.items():
            assert 0 <= self_time_ns <= span.duration_ns, span
        own_ns = sum(root.self_times_ns.values())
        assert own_ns == root.e2e.duration_ns


# ── Order, duplicates, damage ────────────────────────────────────────────────────────────────────


@given(ANY_TRACE, st.randoms(use_true_random=False))
def test_order_and_repetition_of_spans_change_nothing(case: Case, random: Random) -> None:
    spans = spans_of(case)
    expected = canonical(explained(case))
    repeated = [*spans, *random.sample(spans, random.randint(0, len(spans)))]
    random.shuffle(repeated)
    assert canonical(process(repeated, EXACT)) == expected


@given(arbitrary_spans(), ASSUMPTIONS)
def test_nothing_is_raised_whatever_comes(spans: list[Span], assumptions: Assumptions) -> None:
    note("\n".join(f"{span} {span.attributes} {span.events} {span.links}" for span in spans))
    outcome = process(spans, assumptions)
    for root in outcome.paths.roots:
        assert root.e2e.duration_ns == root.root.duration_ns >= 0


@pytest.mark.parametrize("value", STRANGE_VALUES, ids=repr)
def test_nothing_is_raised_whatever_an_attribute_holds(value: AttributeValue) -> None:
    for name in NAMES:
        outcome = process(spans_that_hold(name, value), EXACT)
        for root in outcome.paths.roots:
            assert root.e2e.duration_ns == root.root.duration_ns, name


@given(damaged_traces())
@example(ONLY_DAMAGED)
@example(ONE_ID_DAMAGED_TWICE)
def test_what_is_damaged_is_on_no_path(case: Case) -> None:
    outcome = explained(case)
    for span in outcome.trace.operations:
        assert span.start_ns <= span.end_ns
    for root in outcome.paths.roots:
        for path in paths_of(root):
            assert all(section.span.duration_ns >= 0 for section in path.sections)


# ── Slack ────────────────────────────────────────────────────────────────────────────────────────


@given(ANY_TRACE)
def test_slack_is_never_negative_and_never_on_the_path(case: Case) -> None:
    for root in explained(case).paths.roots:
        on_path = {section.span for section in root.e2e.sections}
        assert not on_path & root.slacks_ns.keys()
        assert all(slack_ns >= 0 for slack_ns in root.slacks_ns.values())


# ── Clocks ───────────────────────────────────────────────────────────────────────────────────────


@given(call_traces(), st.sampled_from(HOSTS), st.integers(-100_000, 100_000))
def test_no_section_depends_on_how_two_clocks_differ(case: Case, host: str, by: int) -> None:
    """A constant on all stamps of one clock is what nobody can know from a trace."""
    moved = replace(
        case, spans=[_moved(span, by) if span["host"] == host else span for span in case.spans]
    )
    for one, other in zip(explained(case).paths.roots, explained(moved).paths.roots, strict=True):
        assert sections(one.e2e) == sections(other.e2e)
        assert sections(one.ttft) == sections(other.ttft)


def _moved(span: Json, by: int) -> Json:
    stamps = [key for key in ("start", "end", "first_useful_content") if key in span]
    moved = {**span, **{key: span[key] + by for key in stamps}}
    if "events" in span:
        moved["events"] = [{**event, "at": event["at"] + by} for event in span["events"]]
    return moved
