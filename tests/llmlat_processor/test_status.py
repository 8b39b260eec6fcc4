"""Books and status: they add up, several are one, and as plain data they are the same."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from llmlat_processor.model.status import Books, Journaled, Sending, Status, Worker, together, total
from tests.llmlat_processor.metrics.samples import BOOKS, STATUS

COUNTS = st.integers(0, 10**9)
BY_REASON = st.dictionaries(st.text(max_size=3), COUNTS, max_size=3)


def some_books() -> SearchStrategy[Books]:
    return st.builds(
        Books,
        **{
            one.name: BY_REASON if one.name in ("dropped", "as_they_came", "other") else COUNTS
            for one in fields(Books)
        },
    )


def test_books_balance_where_every_span_is_in_one_place() -> None:
    assert (BOOKS.came, BOOKS.went) == (1_320, 1_320)
    assert BOOKS.balances
    assert Books().balances


@pytest.mark.parametrize("name", ["received", "sent", "consumed", "held", "queued"])
def test_a_span_that_is_lost_or_counted_twice_is_seen(name: str) -> None:
    for more in (-1, 1):
        assert not replace(BOOKS, **{name: getattr(BOOKS, name) + more}).balances


def test_less_than_nothing_is_no_balance() -> None:
    assert not Books(received=1, sent=2, held=-1).balances


def test_books_of_nothing_much_are_one_short_line() -> None:
    assert str(Books(received=1, added=2, sent=3, traces=1)) == (
        "1 spans received, 2 added: 3 sent; 1 traces explained"
    )


def test_the_line_names_everything_that_there_is() -> None:
    assert str(replace(BOOKS, consumed=2)) == (
        "1200 spans received (20 of them from the journal), 120 added: 1300 sent, 3 repeated, "
        "2 consumed, 8 held, 7 to be sent, 2 dropped (rejected by the destination), 5 damaged, "
        "6 metrics requests; 12 traces explained, 1 again with late spans, "
        "spans as they came: 4 (late)"
    )


@given(st.lists(some_books(), max_size=4))
def test_the_books_of_all_workers_are_the_sum_of_theirs(several: list[Books]) -> None:
    whole = total(several)

    assert whole.came == sum(one.came for one in several)
    assert whole.went == sum(one.went for one in several)
    assert whole.late == sum(one.late for one in several)
    assert sum(whole.other.values()) == sum(sum(one.other.values()) for one in several)
    assert whole.balances or not all(one.balances for one in several)


@given(some_books())
def test_books_survive_json_and_another_process(books: Books) -> None:
    told = json.loads(json.dumps(books.document()))

    assert Books.of(told) == books
    assert told["balances"] == books.balances
    assert pickle.loads(pickle.dumps(books)) == books


def test_a_status_survives_json_and_another_process() -> None:
    for status in (STATUS, Status(Books()), replace(STATUS, not_ready="the queue is full")):
        assert Status.of(json.loads(json.dumps(status.document()))) == status
        assert pickle.loads(pickle.dumps(status)) == status


def test_a_newer_processor_may_tell_more_and_an_older_one_less() -> None:
    assert Status.of({"books": {"received": 3, "lent": 7}, "weather": "fine"}) == Status(
        Books(received=3)
    )


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ([], "status of a status must be names and values"),
        ({}, "books of a status must be names and values, not None"),
        ({"books": {"received": "3"}}, "received of a status must be a whole number, not '3'"),
        ({"books": {"dropped": {"x": 0.5}}}, "x of a status must be a whole number"),
        ({"books": {}, "mode": 1}, "mode of a status must be a text"),
        ({"books": {}, "uptime_s": "long"}, "uptime_s of a status must be a number of seconds"),
        ({"books": {}, "workers": {}}, "workers of a status must be a list"),
        ({"books": {}, "workers": [3]}, "worker of a status must be names and values"),
        ({"books": {}, "journal": {"is_healthy": 1}}, "is_healthy of a status must be true or"),
        ({"books": {}, "destinations": {"a:1": None}}, "destination of a status must be names"),
    ],
)
def test_what_is_no_status_is_refused_with_its_part(document: object, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        Status.of(document)


def test_workers_together_are_one_processor() -> None:
    other = Status(
        Books(received=10, sent=4, queued=6, traces=2),
        mode="inline",
        uptime_s=5,
        not_ready="the queue is full",
        held_bytes=1,
        destinations={"tempo:4317": Sending(4, 6, 100, 0, "late news")},
        journal=Journaled(1, 10, is_healthy=False),
    )
    whole = together({"0": STATUS, "1": other})

    assert whole.books == total([BOOKS, other.books])
    assert (whole.mode, whole.uptime_s, whole.held_bytes) == ("inline", 11_520, 1_258_292)
    assert whole.not_ready == "1: the queue is full"
    assert whole.destinations == {
        "tempo:4317": Sending(1_304, 13, 4_196, 2, "UNAVAILABLE: it is down"),
        "jaeger:4317": Sending(),
    }
    assert whole.journal == Journaled(13, 1_048_586, is_healthy=False)
    assert whole.workers == (
        Worker("0", BOOKS, 1_258_291),
        Worker("1", other.books, 1, "the queue is full"),
    )
