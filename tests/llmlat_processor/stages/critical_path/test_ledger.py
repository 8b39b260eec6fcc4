"""The ledger: work, its overlap and its waste, never added to the path."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from llmlat_processor.model import Span
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import MS, chat, engine, explained, phase, row

ROOT = row("R", None, 0, 100)


def books(*rows: Json) -> dict[str, str]:
    return dict(line.split() for line in explained(*rows).ledger(None))


#   R   ├────────────────────────────────┤
#   a     ├────────┤                          0 .. 40
#   b         ├────────┤                      30 .. 60     10 overlapped
#   c                       ├────┤            80 .. 90
def test_work_is_what_leaves_did_and_busy_is_when_any_of_them_did() -> None:
    rows = row("a", "R", 0, 40), row("b", "R", 30, 60), row("c", "R", 80, 90)
    assert books(ROOT, *rows) == {"work": "80", "busy_union": "70", "overlapped": "10"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], ("100", "100")),
        ([row("a", "R", 10, 90), row("b", "R", 20, 30)], ("90", "80")),
        ([row("a", "R", 10, 20), row("b", "R", 20, 30)], ("20", "20")),
        ([row("a", "R", 10, 90), row("b", "a", 20, 30)], ("10", "10")),
        ([row("a", "R", 10, 10)], ("0", "0")),
    ],
    ids=["a root alone", "one inside another", "touching", "only leaves count", "no length"],
)
def test_which_leaves_count_and_how(rows: list[Json], said: tuple[str, str]) -> None:
    found = books(ROOT, *rows)
    assert (found["work"], found["busy_union"]) == said


def test_a_call_is_a_leaf_of_its_own_side() -> None:
    """Its callee's work is on another clock, and the same time."""
    rows = chat("c", "R", 0, 40), engine("e", "c", 7_000, 7_030)
    assert books(ROOT, *rows) == {"work": "40", "busy_union": "40", "overlapped": "0"}


# ── Retry waste ──────────────────────────────────────────────────────────────────────────────────


def waste(*rows: Json) -> str:
    return explained(chat("c", None, 0, 100), *rows).retry_waste(None)


def attempt(number: int, start: float, end: float, **keys: object) -> Json:
    return row(f"a{number}", "c", start, end, kind="client", attempt=number, **keys)


def test_waste_is_absent_where_attempts_are_invisible() -> None:
    assert waste() == "absent"
    assert waste(row("inner", "c", 0, 40, error=True)) == "absent"


def test_waste_is_nothing_where_the_first_attempt_was_good() -> None:
    assert waste(attempt(1, 0, 90)) == "0"


def test_waste_is_what_failed_attempts_have_on_the_path() -> None:
    found = waste(
        attempt(1, 0, 30, error=True),
        engine("e", "a1", 0, 20, error=True),
        phase(Phase.BACKOFF, "c", 30, 50),
        attempt(2, 50, 90),
    )
    assert found == "30"


def test_a_failed_attempt_that_is_hidden_wasted_nothing() -> None:
    assert waste(attempt(1, 0, 30, error=True), attempt(2, 0, 90)) == "0"


def amounts(found: Mapping[Span, int]) -> dict[str, float]:
    return {span.span_id.decode(): size / MS for span, size in found.items()}


#   R   ├──────────────────────────────────┤
#   a     ├──────────────────────────┤          on the path
#   b     ├───────────┤                         hidden behind a
#   c       ├────┤                              a child of b
def test_what_is_not_on_the_path_is_hidden() -> None:
    found = explained(ROOT, row("a", "R", 0, 90), row("b", "R", 0, 30), row("c", "b", 5, 20))
    assert amounts(found.explained.paths.roots[0].ledger.hidden_ns) == {"b": 30, "c": 15}


def test_a_call_hides_nothing_of_the_callee_that_stands_in_its_place() -> None:
    found = explained(chat("c", None, 0, 100), engine("e", "c", 0, 80))
    ledger = found.explained.paths.roots[0].ledger
    assert (amounts(ledger.hidden_ns), amounts(ledger.trailing_ns)) == ({}, {})


def test_what_a_callee_does_after_its_last_output_trails() -> None:
    served = engine("e", "c", 0, 80, phases={"prefill": 20, "decode": 40})
    ledger = explained(chat("c", None, 0, 100), served).explained.paths.roots[0].ledger
    assert amounts(ledger.trailing_ns) == {"e": 20}
    assert amounts(ledger.hidden_ns) == {"e": 20}
