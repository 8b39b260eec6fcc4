"""Reports from users of other tools about the shape of traces and their collectors."""

from __future__ import annotations

import time
from itertools import chain, permutations
from random import Random
from typing import Any

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.stages.annotate import MOST_TOLD
from llmlat_processor.views.lane import LISTED, SHOWN, lane
from llmlat_processor.window import SECOND_NS, Released, Why, Window
from llmlat_processor.wire import as_sent
from llmlat_processor.wire.encode import extended
from llmlat_processor.wire.resources import resource_of
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EPOCH_NS
from tests.llmlat_processor.otlp import pairs
from tests.properties.canonical import sections

APP = resource_of(
    ResourceSpans(
        resource=Resource(attributes=pairs({names.SERVICE_NAME: "app"}))
    ).SerializeToString()
)
TRACE_ID = b"long-running-one"
MS_NS = 1_000_000
AGENT = {names.GEN_AI_OPERATION_NAME: "invoke_agent"}

# Users of others waited for minutes, and for pages that froze.
SECONDS_NOT_MINUTES = 30

ADDED_BYTES = 2_048
"""What is added to a span at most, its findings aside; to a root there is the summary as well."""

FINDING_BYTES = 1_024


def span(number: int, parent: int, start_ms: float, end_ms: float, **more: Any) -> Span:
    return as_sent(
        Span(
            more.pop("trace_id", TRACE_ID),
            number.to_bytes(8, "big"),
            parent.to_bytes(8, "big") if parent else b"",
            more.pop("name", f"span {number}"),
            more.pop("kind", INTERNAL),
            EPOCH_NS + round(start_ms * MS_NS),
            EPOCH_NS + round(end_ms * MS_NS),
            APP,
            **more,
        )
    )


def numbers(spans: Any) -> list[int]:
    return [int.from_bytes(one.span_id, "big") for one in spans]


def kinds(explained: ExplainedTrace) -> set[FindingKind]:
    return {finding.kind for finding in explained.findings}


def fed(window: Window, *spans: Span, at_s: float = 0) -> list[Released]:
    return [*window.feed_all(spans, round(at_s * SECOND_NS))]


def expired(window: Window, at_s: float) -> list[Released]:
    return [*window.expire(round(at_s * SECOND_NS))]


# ── SH: the shape of traces ──────────────────────────────────────────────────────────────────────


def test_sh_01_an_orphan_is_held_until_its_parent_comes() -> None:
    window = Window()
    fed(window, span(3, 2, 2, 4))
    fed(window, span(1, 0, 0, 10), at_s=1)
    fed(window, span(2, 1, 1, 5), at_s=2)
    (released,) = expired(window, 4)

    explained = process(released.spans)
    (paths,) = explained.paths.roots

    assert explained.trace.complete
    assert numbers(s.span for s in paths.e2e.sections) == [1, 2, 3, 2, 1]


def test_sh_01_where_its_parent_never_comes_it_is_said_and_is_on_no_path() -> None:
    explained = process([span(1, 0, 0, 10), span(3, 2, 2, 4)])
    (paths,) = explained.paths.roots

    assert kinds(explained) == {FindingKind.MISSING_PARENT}
    assert not explained.trace.complete
    assert numbers(s.span for s in paths.e2e.sections) == [1]


def test_sh_01_without_any_root_it_hangs_under_one_with_the_absent_id() -> None:
    explained = process([span(3, 2, 2, 4), span(4, 2, 4, 6)])
    (paths,) = explained.paths.roots

    assert (numbers([paths.root]), explained.trace.complete) == ([2], False)


def test_sh_01_a_trace_of_hundreds_of_spans_loses_none_of_its_parents() -> None:
    spans = [span(n, n - 1, n, 900 - n) for n in range(1, 401)]
    Random(1).shuffle(spans)
    window = Window()
    for second, one in enumerate(spans):
        fed(window, one, at_s=second / 100)

    (released,) = expired(window, 10)

    assert not process(released.spans).findings


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_sh_03_batches_of_one_trace_come_in_any_order(order: tuple[int, ...]) -> None:
    batches = [[span(4, 2, 3, 4), span(3, 1, 5, 9)], [span(2, 1, 2, 5)], [span(1, 0, 0, 10)]]
    window = Window()
    for second, place in enumerate(order):
        fed(window, *batches[place], at_s=second)
    (released,) = expired(window, 5)

    explained = process(released.spans)

    assert released.why is Why.COMPLETE
    assert said(explained) == said(process([*chain.from_iterable(batches)]))


def said(explained: ExplainedTrace) -> Any:
    return [sections(paths.e2e) for paths in explained.paths.roots], kinds(explained)


def test_sh_04_children_over_an_hour_are_explained_when_the_root_comes() -> None:
    steps = [span(n, 1, 60_000 * n, 60_000 * n + 50_000, attributes=AGENT) for n in range(2, 60)]
    root = span(1, 0, 0, 3_600_000, attributes=AGENT)
    window = Window()
    early: list[Released] = []
    for minute, step in enumerate(steps, start=2):
        early += fed(window, step, at_s=60 * minute)
        early += expired(window, 60 * minute + 59)
        early += expired(window, 60 * minute + 60)
    early += fed(window, root, at_s=3_601)
    early += expired(window, 3_602.9)

    (released,) = expired(window, 3_607)

    assert {one.why for one in early} == {Why.HELD_LONGEST}
    assert [one.name for each in early for one in each.spans] == [one.name for one in steps]
    assert released.fresh == [root]
    assert said(process(released.spans)) == said(process([*steps, root]))


def test_sh_05_a_client_and_a_server_of_one_id_are_both_kept_with_the_child_below_the_server() -> (
    None
):
    spans = [
        span(1, 0, 0, 20),
        span(2, 1, 1, 19, kind=CLIENT),
        span(2, 1, 2, 18, kind=SERVER),
        span(3, 2, 3, 17),
    ]
    window = Window()
    fed(window, *spans)
    (released,) = expired(window, 2)

    trace = process(released.spans).trace
    by_place = [(*numbers([one]), one.kind) for one in trace.operations]

    assert by_place == [(1, INTERNAL), (2, CLIENT), (2, SERVER), (3, INTERNAL)]
    assert [*trace.parents] == [-1, 0, 1, 2]
    assert FindingKind.DEPENDENCY_CYCLE not in {finding.kind for finding in trace.findings}


def test_sh_06_a_batch_that_was_sent_again_doubles_nothing() -> None:
    batch = [span(1, 0, 0, 10), span(2, 1, 1, 9)]
    richer = span(2, 1, 1, 9, attributes={"retry": True})
    window = Window()
    fed(window, *batch, *batch, richer)
    (released,) = expired(window, 2)

    explained, once = process(released.spans), process([batch[0], richer])

    assert len(released.spans) == 5
    assert [sections(p.e2e) for p in explained.paths.roots] == [
        sections(p.e2e) for p in once.paths.roots
    ]
    assert explained.trace.spans == (batch[0], richer)
    assert {one.why for one in fed(window, *batch, richer, at_s=3)} == {Why.REPEATED}


def test_sh_07_eighty_thousand_spans_take_seconds_and_one_root_sums_them_up() -> None:
    began = time.perf_counter()
    jobs = [span(n, 2, n / 10, n / 10 + 30, name="job") for n in range(10, 80_010)]
    window = Window()
    early = fed(window, *jobs, span(2, 1, 0, 8_100, name="all"), span(1, 0, 0, 8_200))
    (released,) = expired(window, 2)
    explained = process(released.spans)
    (drawn, *_), added = lane(explained), len(explained.annotations)
    took_s = time.perf_counter() - began

    assert {one.why for one in early} == {Why.COLLAPSED}
    assert released.missing == 0
    assert len(released.spans) + sum(len(one.spans) for one in early) == 80_002
    assert sum(s.duration_ns for s in explained.paths.roots[0].e2e.sections) == 8_200 * MS_NS
    assert len(lane(explained)) <= SHOWN + 1
    assert len(drawn.attributes[names.LLMLAT_CRITICAL_PATH_SECTIONS]) <= LISTED  # type: ignore[arg-type]
    assert added <= len(released.spans)
    assert took_s < SECONDS_NOT_MINUTES


def test_sh_08_what_is_added_to_a_span_is_bounded_whatever_it_is_a_witness_of() -> None:
    children = [span(n, 1, 1, 2_000 + n) for n in range(2, 3_002)]
    explained = process([span(1, 0, 0, 100), *children])
    (root,) = [paths.root for paths in explained.paths.roots]

    assert len(explained.findings) == len(children)
    assert len(explained.annotations[root].events) == MOST_TOLD
    for one, added in explained.annotations.items():
        size = len(extended(b"", added))
        told = FINDING_BYTES * len(added.events)
        assert size <= told + (2 if one is root else 1) * ADDED_BYTES


def test_sh_08_one_span_of_ours_sums_a_long_trace_up_and_all_of_them_are_few() -> None:
    steps = [span(n, 1, 10 * n, 10 * n + 9, attributes=AGENT) for n in range(2, 5_002)]
    explained = process([span(1, 0, 0, 60_000, attributes=AGENT), *steps])

    drawn = [as_sent(one) for one in lane(explained)]

    assert len(explained.paths.roots[0].e2e.sections) > 5_000
    assert len(drawn) <= SHOWN + 1
    assert sum(len(one.raw) for one in drawn) < 32 * 1_024
    assert max(len(extended(b"", added)) for added in explained.annotations.values()) < ADDED_BYTES


# ── CO: collectors ───────────────────────────────────────────────────────────────────────────────


def test_co_01_a_late_span_belongs_to_the_trace_as_it_was_told_and_is_late() -> None:
    window = Window()
    fed(window, span(1, 0, 0, 10, attributes=AGENT))
    expired(window, 5)

    (late,) = fed(window, span(2, 1, 1, 9), at_s=7)
    (anew,) = expired(window, 9)

    assert (late.why, numbers(late.fresh)) == (Why.LATE, [2])
    assert (anew.why, numbers(anew.spans), anew.fresh) == (Why.REVISED, [1, 2], [])


def test_co_02_a_root_that_is_longer_than_the_wait_is_not_treated_on_its_own() -> None:
    children = [span(n, 1, n, n + 5) for n in range(2, 6)]
    root = span(1, 0, 0, 240_000)
    window = Window()
    fed(window, *children, at_s=6)
    (first,) = expired(window, 66)
    fed(window, root, at_s=240)

    (released,) = expired(window, 242)

    assert (first.why, first.fresh) == (Why.HELD_LONGEST, children)
    assert (released.why, released.fresh) == (Why.COMPLETE, [root])
    assert said(process(released.spans)) == said(process([*children, root]))


@pytest.mark.parametrize("length_ms", [0.5, 40])
def test_co_03_one_trace_above_the_cap_starves_nobody_and_is_told(length_ms: float) -> None:
    large = [span(n, 1, n, n + length_ms, name="job") for n in range(2, 60_002)]
    small = [span(1, 0, 0, 5, trace_id=trace.to_bytes(16, "big")) for trace in range(1, 101)]
    window = Window()
    early = fed(window, *large[:30_000], *small, *large[30_000:])

    complete = [one for one in expired(window, 2) if one.why is Why.COMPLETE]

    over = Why.TRACE_FULL if length_ms < 1 else Why.COLLAPSED
    assert len(complete) == len(small)
    assert {one.why for one in early} == {over}
    books = window.books
    assert books.received == len(large) + len(small) == books.held + sum(books.released.values())
    assert books.released[over] >= 10_000 - 1


def test_co_04_a_complete_trace_is_not_held_until_the_longest_wait_has_passed() -> None:
    window = Window()
    call = span(2, 1, 1, 9, kind=CLIENT)
    fed(window, span(1, 0, 0, 50), call, span(3, 2, 2, 8, kind=SERVER), at_s=0.05)

    (released,) = expired(window, 2.05)
    (late,) = fed(window, span(4, 1, 3, 4), at_s=2.1)

    assert (released.why, len(released.spans)) == (Why.COMPLETE, 3)
    assert (late.why, window.books.released[Why.LATE]) == (Why.LATE, 1)
