"""Paths: sections that merge, sums that hold, and an entry per root."""

from __future__ import annotations

import pytest

from llmlat_processor.model import Assumptions
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from llmlat_processor.stages.critical_path import critical_paths
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import (
    chat,
    engine,
    explained,
    findings,
    phase,
    placed,
    row,
    spans,
)

ROOT = row("R", None, 0, 100)


def self_times(*rows: Json) -> dict[str, float]:
    found = explained(*rows).root(None).self_times_ns
    return {span.span_id.decode(): size / 10**6 for span, size in found.items()}


def test_equal_neighbours_merge() -> None:
    """Two chunks of a prefill without a gap, and a child without any length between the rest."""
    found = explained(
        row("R", None, 0, 100, boundary="engine"),
        row("p1", "R", 0, 30, phase="prefill"),
        row("p2", "R", 30, 60, phase="prefill"),
        row("z", "R", 80, 80),
    )
    assert placed(found) == ["R prefill 0..60", "R unobserved 60..100"]


def test_sections_of_another_clock_stand_where_durations_put_them() -> None:
    found = explained(
        ROOT, row("c", "R", 20, 80, kind="client"), engine("e", "c", 900_000, 900_040)
    )
    assert placed(found) == [
        "R unobserved 0..20",
        "e work 20..60",
        "c transit 60..80",
        "R unobserved 80..100",
    ]


def test_a_path_passes_through_those_above_it_even_if_they_answer_for_nothing() -> None:
    rows = row("p", "R", 0, 100), row("q", "p", 0, 100), row("off", "R", 0, 50)
    assert self_times(ROOT, *rows) == {"q": 100, "p": 0, "R": 0}


def test_several_roots_have_one_path_each() -> None:
    found = explained(ROOT, row("a", "R", 10, 20), row("S", None, 5, 50), row("b", "S", 30, 50))
    assert placed(found, root="R") == [
        "R unobserved 0..10",
        "a work 10..20",
        "R unobserved 20..100",
    ]
    assert placed(found, root="S") == ["S unobserved 5..30", "b work 30..50"]


def test_a_trace_may_be_asked_again() -> None:
    """What the clocks have read is used up by the first who asks, and read anew by the next."""
    call = chat("c", "R", 10, 90)
    made = spans(ROOT, call, phase(Phase.WAIT, "c", 20, 80), engine("e", "c", 5, 40))
    aligned = align_clocks(assemble(made, Assumptions()))
    assert any(aligned.facts.values())
    first, again = critical_paths(aligned), critical_paths(aligned)

    assert not any(aligned.facts.values())
    assert repr(first) == repr(again)


def test_a_provisional_root_has_a_path_like_any_other() -> None:
    found = explained(row("a", "gone", 0, 40), row("b", "gone", 60, 90))
    assert placed(found) == ["a work 0..40", "gone unobserved 40..60", "b work 60..90"]
    assert findings(found) == ["missing_parent of a", "missing_parent of b"]


def test_a_trace_without_roots_has_no_paths() -> None:
    found = explained(row("a", "b", 0, 10), row("b", "a", 0, 10))
    assert found.explained.paths.roots == ()


def test_a_finding_is_made_once_however_often_an_account_is_walked() -> None:
    """The gateway's account is settled again once its callee has been found."""
    found = explained(
        chat("c", None, 0, 100),
        phase(Phase.WAIT, "c", 0, 100),
        engine("g", "c", 0, 80, host="edge", boundary="gateway", phases={"admission": 500}),
        row("up", "g", 10, 70, host="edge", kind="client", boundary="gateway"),
        engine("e", "c", 0, 50),
    )
    assert findings(found) == ["hop_bypassed of e", "phase_overflow of g 480"]


@pytest.mark.parametrize("ids", [("a", "b"), ("b", "a")])
def test_the_order_of_ids_in_hashes_decides_nothing(ids: tuple[str, str]) -> None:
    rows = [row(name, "R", 10, 50) for name in ids]
    assert placed(explained(ROOT, *rows))[1] == "a work 10..50"
