"""The backward walk: who answers for which time, and why the path went there."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from tests.cases.case_format import EXACT
from tests.llmlat_processor.stages.spans import explained, link, placed, row

ROOT = row("R", None, 0, 100)


#   R       ├────────────────────────────────────┤
#   a          ├─────┤
#   b            ├────────┤                           ended last before c: hides a
#   c                         ├───────────┤
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_from_the_end_backward_what_ended_last_is_entered(order: tuple[int, ...]) -> None:
    children = row("a", "R", 10, 30), row("b", "R", 20, 45), row("c", "R", 60, 90)
    found = explained(ROOT, *(children[i] for i in order))
    assert placed(found) == [
        "R unobserved 0..20",
        "b work 20..45",
        "R unobserved 45..60",
        "c work 60..90",
        "R unobserved 90..100",
    ]
    assert found.edge("b > c", None) == "inferred"


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [((10, 50), (20, 50), "a"), ((20, 50), (10, 50), "b"), ((10, 50), (10, 50), "a")],
    ids=["the earlier start", "the earlier start, whatever the id", "then the smaller id"],
)
def test_of_those_that_ended_together_one_is_chosen_by_rule(
    first: tuple[float, float], second: tuple[float, float], chosen: str
) -> None:
    found = explained(ROOT, row("a", "R", *first), row("b", "R", *second))
    assert placed(found)[1] == f"{chosen} work 10..50"


@pytest.mark.parametrize(
    ("overlap", "epsilon_ms", "edge"),
    [(0, 0, True), (0.5, 0, False), (0.5, 1, True), (1, 1, True), (1.5, 1, False)],
)
def test_a_sibling_precedes_if_it_ended_by_the_start_within_the_resolution(
    overlap: float, epsilon_ms: int, edge: bool
) -> None:
    assumptions = replace(EXACT, resolution_ns=epsilon_ms * 1_000_000)
    rows = row("a", "R", 0, 50 + overlap), row("b", "R", 50, 100)
    found = explained(ROOT, *rows, assumptions=assumptions)
    assert placed(found) == ["a work 0..50" if edge else "R unobserved 0..50", "b work 50..100"]


def test_children_of_a_child_are_found_below_it_only() -> None:
    found = explained(ROOT, row("p", "R", 40, 90), row("q", "p", 50, 60), row("a", "R", 10, 55))
    assert placed(found)[1:4] == ["p unobserved 40..50", "q work 50..60", "p unobserved 60..90"]


def test_operations_without_any_length_do_not_break_the_chain() -> None:
    """Of those that end together the one that began first is entered, so z is passed over."""
    rows = row("a", "R", 0, 50), row("z", "R", 50, 50), row("b", "R", 50, 100)
    found = explained(ROOT, *rows)
    assert placed(found) == ["a work 0..50", "b work 50..100"]
    assert found.edge("a > b", None) == "inferred"


def test_a_root_without_any_length_has_no_sections() -> None:
    found = explained(row("R", None, 5, 5), row("a", "R", 5, 5))
    assert placed(found) == []
    assert found.total("e2e", None) == "0"


def test_edges_of_time_that_was_clipped_off_are_no_edges_of_the_path() -> None:
    """P began before R, and so did the two whose order only matters before R's start."""
    found = explained(
        row("R", None, 40, 100),
        row("p", "R", 0, 90, phases={"load": 1}),
        row("a", "p", 5, 10),
        row("b", "p", 10, 30),
        row("c", "p", 50, 60),
    )
    edges = {(edge.before, edge.after) for edge in found.explained.paths.roots[0].e2e.edges}
    assert (b"a", b"b") not in edges


def test_a_long_chain_of_explicit_edges_is_followed_to_its_start() -> None:
    rows = [row(f"s{i}", "R", 2 * i, 2 * i + 1) for i in range(50)]
    blocker = row("x", "R", 0, 97.5)
    links = [link(f"s{i}", f"s{i - 1}") for i in range(1, 50)]
    found = explained(ROOT, *rows, blocker, links=links)
    assert {line.split()[0] for line in placed(found)} == {"R", *(f"s{i}" for i in range(50))}
