"""Slack: how much longer what is off the path could have been."""

from __future__ import annotations

import pytest
from hypothesis import given

from llmlat_processor.pipeline import process
from llmlat_processor.stages.critical_path.what_if import what_if
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.stages.spans import chat, engine, explained, link, not_awaited, row
from tests.properties.traces import linked_traces

ROOT = row("R", None, 0, 100)


def slacks(*rows: Json, links: tuple[Json, ...] = ()) -> dict[str, float]:
    found = explained(*rows, links=links).root(None).slacks_ns
    return {span.span_id.decode(): slack_ns / 10**6 for span, slack_ns in found.items()}


#   R   ├──────────────────────────────────┤
#   a     ├────────────────────┤                 on the path
#   b     ├───────┤╌╌╌╌╌╌╌╌╌╌╌╌╌                 up to where a held c back
#   c                           ├──────┤         on the path
def test_what_ran_beside_the_path_has_slack_up_to_where_the_path_went_on() -> None:
    rows = row("a", "R", 5, 60), row("b", "R", 5, 20), row("c", "R", 60, 90)
    assert slacks(ROOT, *rows) == {"b": 40}


def test_slack_ends_where_the_last_joined_operation_does() -> None:
    assert slacks(ROOT, row("a", "R", 5, 90), row("b", "R", 5, 60)) == {"b": 30}


def test_what_waited_for_it_shares_its_slack() -> None:
    """B could run to 50: then c, which may have waited for it, would still end by 90."""
    rows = row("a", "R", 0, 90), row("b", "R", 0, 30), row("c", "R", 40, 70)
    assert slacks(ROOT, *rows) == {"b": 20, "c": 20}


def test_an_operation_below_one_off_the_path_inherits_its_slack() -> None:
    rows = row("a", "R", 0, 90), row("b", "R", 0, 30), row("inner", "b", 5, 25)
    assert slacks(ROOT, *rows) == {"b": 60, "inner": 60}


def test_the_callee_of_a_call_off_the_path_has_its_callers_slack() -> None:
    rows = row("a", "R", 0, 90), chat("c", "R", 0, 30), engine("e", "c", 0, 20)
    assert slacks(ROOT, *rows) == {"c": 60, "e": 60}


def test_who_said_for_whom_it_waited_is_held_back_by_nobody_else() -> None:
    """Without the link, b would have had 10 ms, up to where c began."""
    rows = row("a", "R", 0, 40), row("b", "R", 0, 50), row("c", "R", 60, 100)
    assert slacks(ROOT, *rows, links=(link("c", "a"),)) == {"b": 50}


@pytest.mark.parametrize("child", not_awaited("R").values(), ids=not_awaited("R"))
def test_what_nobody_waited_for_has_no_slack_to_state(child: Json) -> None:
    assert slacks(ROOT, row("a", "R", 0, 90), child) == {}


def test_nothing_on_the_path_has_slack() -> None:
    assert slacks(ROOT, row("a", "R", 0, 50), row("b", "R", 50, 100)) == {}


@given(linked_traces())
def test_slack_can_be_spent_where_some_said_for_whom_they_waited(case: Case) -> None:
    outcome = process(spans_of(case), EXACT)
    root = outcome.paths.roots[0]
    for span, slack_ns in root.slacks_ns.items():
        result = what_if(outcome.aligned, root.root, span_id=span.span_id, by_ns=slack_ns)
        assert result.saves_ns == 0, span
