"""How far two accounts of one trace are apart: what is worth another lane, and what is not."""

from __future__ import annotations

from llmlat_processor.pipeline import process
from llmlat_processor.service.revising import CHANGED, change
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import row, spans

ROOT = row("root", None, 0, 1_000, service="app")
SEEN = row("seen", "root", 0, 50, service="app")
"""A root without a child is work; with one, the rest of it is unobserved: another label."""


def moved(before: list[Json], after: list[Json]) -> float:
    return change(process(spans(*before)), process(spans(*after)))


def test_the_same_spans_change_nothing() -> None:
    assert moved([ROOT, row("a", "root", 100, 300)], [ROOT, row("a", "root", 100, 300)]) == 0


def test_what_went_from_one_service_to_another_counts_once() -> None:
    late = row("late", "root", 100, 350, service="db", host="elsewhere", kind="server")

    assert moved([ROOT, SEEN], [ROOT, SEEN, late]) == 0.25


def test_a_span_that_takes_nothing_of_the_path_changes_nothing() -> None:
    seen = row("a", "root", 100, 900, service="app")

    assert moved([ROOT, seen], [ROOT, seen, row("late", "root", 200, 300)]) == 0


def test_a_hundredth_is_the_least_that_counts() -> None:
    less = row("late", "root", 100, 109, service="db")
    enough = row("late", "root", 100, 110, service="db")

    assert moved([ROOT, SEEN], [ROOT, SEEN, less]) < CHANGED
    assert moved([ROOT, SEEN], [ROOT, SEEN, enough]) >= CHANGED
    assert moved([ROOT], [ROOT, SEEN]) == 0.95


def test_another_root_is_another_account() -> None:
    assert moved([ROOT], [ROOT, row("other", None, 0, 10)]) == 1


def test_a_path_to_the_first_content_that_there_was_not_is_another_account() -> None:
    chat = row("c", "root", 0, 500, kind="client", op="chat", first_useful_content=300, stream=True)

    assert moved([ROOT], [ROOT, chat]) == 1


def test_the_order_of_the_two_does_not_matter() -> None:
    late = row("late", "root", 100, 350, service="db")

    assert moved([ROOT], [ROOT, late]) == moved([ROOT, late], [ROOT])
