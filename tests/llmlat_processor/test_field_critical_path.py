"""Reports from users of other tools about critical paths, each with its whole kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from llmlat_processor.model import ExplainedTrace, Path
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import spans_of
from tests.cases.outcome import Outcome

# A path over 50,000 spans takes about two seconds; minutes are what users of others waited.
SECONDS_NOT_MINUTES = 30


def span(name: str, parent: str | None, start: float, end: float, **keys: Any) -> Json:
    return {"id": name, "parent": parent, "start": start, "end": end, **keys}


def trace(*spans: Json, links: Sequence[Json] = ()) -> Outcome:
    case = Case("field", "call", "ms", spans=spans, links=links)
    return Outcome(case, process(spans_of(case), EXACT))


def placed(outcome: Outcome, root: str | None = None) -> list[str]:
    return [outcome.placed_line(section) for section in outcome.sections("e2e", root)]


def findings(outcome: Outcome) -> list[str]:
    """`kind of span amount`, sorted."""
    every = {(f.kind.value, f.of.decode()) for f in outcome.explained.findings}
    return outcome.findings(frozenset(every))


# ── CP-01: siblings that touch ───────────────────────────────────────────────────────────────────


def test_cp_01_a_sibling_that_ends_exactly_when_the_next_starts_is_on_the_path() -> None:
    outcome = trace(span("P", None, 0, 100), span("C1", "P", 0, 50), span("C2", "P", 50, 100))
    assert placed(outcome) == ["C1 work 0..50", "C2 work 50..100"]


def test_cp_01_touching_chains_and_instants_leave_no_time_to_the_parent() -> None:
    outcome = trace(
        span("P", None, 0, 30),
        *(span(f"C{i}", "P", 10 * i, 10 * i + 10) for i in range(3)),
        *(span(f"Z{i}", "P", 10 * i, 10 * i) for i in range(4)),
    )
    assert placed(outcome) == ["C0 work 0..10", "C1 work 10..20", "C2 work 20..30"]


# ── CP-02: who waited for whom ───────────────────────────────────────────────────────────────────

GATHER = [
    span("main", None, 0, 500),
    span("foo1", "main", 0, 100),
    span("foo2", "main", 0, 200),
    span("foo3", "main", 200, 500),
]
HALF_OF_FOO2 = {"of": "foo2", "factor": 0.5}


def test_cp_02_without_a_link_the_edge_is_inferred_and_the_bound_is_open() -> None:
    outcome = trace(*GATHER)
    assert placed(outcome) == ["foo2 work 0..200", "foo3 work 200..500"]
    assert outcome.edge("foo2 > foo3", None) == "inferred"
    assert outcome.what_if(HALF_OF_FOO2)[:2] == ["saves 100", "bound 0 .. 100"]


def test_cp_02_with_a_link_the_path_goes_where_it_says() -> None:
    outcome = trace(*GATHER, links=[{"from_span": "foo3", "to_span": "foo1", "type": "follows"}])
    assert placed(outcome) == [
        "foo1 work 0..100",
        "main unobserved 100..200",
        "foo3 work 200..500",
    ]
    assert outcome.edge("foo1 > foo3", None) == "explicit"
    assert outcome.what_if(HALF_OF_FOO2)[:2] == ["saves 0", "bound 0 .. 0"]


# ── CP-03: children that run past the parent ─────────────────────────────────────────────────────

PAST_THE_PARENT = [span("A", None, 1, 30), span("B", "A", 15, 35), span("C", "B", 20, 40)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_cp_03_children_that_outlive_every_ancestor_are_off_the_path(
    order: tuple[int, ...],
) -> None:
    outcome = trace(*(PAST_THE_PARENT[i] for i in order))
    assert placed(outcome) == ["A unobserved 1..30"]
    assert findings(outcome) == ["outlived_parent of B 5", "outlived_parent of C 5"]
    trailing = outcome.explained.paths.roots[0].ledger.trailing_ns
    assert {s.span_id: size // 10**6 for s, size in trailing.items()} == {b"B": 5, b"C": 10}


def test_cp_03_a_child_that_starts_before_its_parent_stays_clipped_and_is_said() -> None:
    outcome = trace(span("A", None, 10, 30), span("B", "A", 5, 20))
    assert placed(outcome) == ["B work 10..20", "A unobserved 20..30"]
    assert findings(outcome) == ["same_domain_order of B 5"]


# ── CP-04: links to elsewhere ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["follows", "retry_of", "joined", "kv_source", "section_of"])
def test_cp_04_a_link_to_another_trace_is_no_parent(kind: str) -> None:
    elsewhere = {"from_span": "R", "to_span": "x", "to_trace": "other", "type": kind}
    outcome = trace(span("R", None, 0, 10), span("c", "R", 2, 8), links=[elsewhere])
    assert placed(outcome) == ["R unobserved 0..2", "c work 2..8", "R unobserved 8..10"]
    assert outcome.explained.trace.complete


def test_cp_04_a_link_to_an_id_of_this_trace_in_another_one_gives_no_edge() -> None:
    namesake = {"from_span": "foo3", "to_span": "foo1", "to_trace": "other", "type": "follows"}
    assert placed(trace(*GATHER, links=[namesake])) == placed(trace(*GATHER))


# ── CP-05: failure is said, and only where it is ─────────────────────────────────────────────────


def kinds(explained: ExplainedTrace) -> set[FindingKind]:
    return {finding.kind for finding in explained.findings}


@pytest.mark.parametrize(
    "cycle",
    [
        [span("a", "b", 0, 10), span("b", "a", 0, 10)],
        [span("a", "a", 0, 10)],
        [span("a", "c", 0, 10), span("b", "a", 0, 10), span("c", "b", 0, 10)],
        [span("a", "b", 0, 10), span("b", "a", 0, 10), span("under", "a", 1, 2)],
    ],
    ids=["two", "self", "three", "with a child"],
)
def test_cp_05_a_cycle_is_said_and_a_good_root_still_answered(cycle: list[Json]) -> None:
    alone = trace(*cycle)
    assert FindingKind.DEPENDENCY_CYCLE in kinds(alone.explained)
    assert not alone.explained.trace.complete
    beside = trace(*cycle, span("R", None, 0, 10), span("leaf", "R", 0, 10))
    assert FindingKind.DEPENDENCY_CYCLE in kinds(beside.explained)
    assert placed(beside, "R") == ["leaf work 0..10"]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (span("bad", None, 20, 10), FindingKind.NEGATIVE_DURATION),
        (span("bad", None, -(10**12), 10), FindingKind.EPOCH_GARBAGE),
        (span("bad", None, 10, 10**60), FindingKind.EPOCH_GARBAGE),
    ],
    ids=["ends before it starts", "before 2000", "beyond any clock"],
)
def test_cp_05_of_two_roots_the_good_one_is_answered(bad: Json, kind: FindingKind) -> None:
    spans = [span("good", None, 0, 10), bad, span("under", "bad", 12, 15)]
    case = Case("field", "call", "ms", spans=spans)
    received_ns = case.instant_ns(1_000)
    explained = process(spans_of(case), type(EXACT)(0, 0, received_ns))
    assert kind in kinds(explained)
    assert [root.root.span_id for root in explained.paths.roots] == [b"good"]
    assert explained.paths.roots[0].e2e.duration_ns == case.duration_ns(10)


def test_cp_05_links_in_a_cycle_are_dropped_and_said() -> None:
    links = [
        {"from_span": "foo1", "to_span": "foo2", "type": "follows"},
        {"from_span": "foo2", "to_span": "foo1", "type": "follows"},
    ]
    outcome = trace(*GATHER, links=links)
    assert FindingKind.DEPENDENCY_CYCLE in kinds(outcome.explained)
    assert placed(outcome) == placed(trace(*GATHER))


# ── CP-06: big traces ────────────────────────────────────────────────────────────────────────────


def wide(n: int) -> list[Json]:
    children = [span(f"c{i}", "R", 2 * i, 2 * i + 1) for i in range(n)]
    return [span("R", None, 0, 2 * n), *children]


def deep(n: int) -> list[Json]:
    return [span(f"d{i}", f"d{i - 1}" if i else None, i, 2 * n - i) for i in range(n)]


def outliving(n: int) -> list[Json]:
    """Each outlives its parent, and all of them only their grandest parent ends late enough."""
    chain = [span(f"d{i}", f"d{i - 1}" if i else "R", i, n + i) for i in range(n)]
    return [span("R", None, 0, 3 * n), *chain]


def overlapping(n: int) -> list[Json]:
    children = [span(f"c{i}", "R", i, n + i) for i in range(n)]
    return [span("R", None, 0, 2 * n), *children]


@pytest.mark.parametrize(
    "spans",
    [wide(50_000), overlapping(50_000), deep(5_000), deep(50_000), outliving(50_000)],
    ids=["50k wide", "50k overlapping", "5k deep", "50k deep", "50k outliving their parents"],
)
def test_cp_06_big_traces_take_seconds_and_no_recursion(spans: list[Json]) -> None:
    case = Case("field", "call", "ms", spans=spans)
    made = spans_of(case)
    began = time.process_time()
    path: Path = process(made, EXACT).paths.roots[0].e2e
    assert time.process_time() - began < SECONDS_NOT_MINUTES
    assert path.duration_ns == path.root.duration_ns


# ── CP-07: fire and forget ───────────────────────────────────────────────────────────────────────


def test_cp_07_children_that_nobody_waited_for_do_not_make_a_parent_long() -> None:
    children = [span(f"c{i}", "P", 5_000 + 30_000 * i, 36_000 + 30_000 * i) for i in range(20)]
    outcome = trace(span("P", None, 0, 1_000), *children)
    assert placed(outcome) == ["P unobserved 0..1000"]
    assert outcome.total("e2e", None) == "1000"
    assert len(findings(outcome)) == 20
    assert kinds(outcome.explained) == {FindingKind.OUTLIVED_PARENT}


def test_cp_07_they_join_the_nearest_ancestor_that_ends_after_them() -> None:
    outcome = trace(
        span("R", None, 0, 100),
        span("P", "R", 0, 10),
        span("starts later", "P", 20, 50),
        span("outlives", "P", 5, 15),
    )
    assert placed(outcome) == [
        "P unobserved 0..5",
        "outlives work 5..15",
        "R unobserved 15..20",
        "starts later work 20..50",
        "R unobserved 50..100",
    ]
    assert findings(outcome) == [
        "outlived_parent of outlives 5",
        "outlived_parent of starts later 40",
    ]
