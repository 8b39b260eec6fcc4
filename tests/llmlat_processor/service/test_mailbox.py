"""Room is promised before it is filled, and no more of it than there is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from llmlat_processor.model import Span
from llmlat_processor.service.mailbox import Mailbox
from tests.llmlat_processor import adviser

A_MOMENT_S = 0.001
WAIT_S = 20


def span(number: int) -> Span:
    return adviser.span(number, 0, "one", 0, 1)


def test_what_was_put_in_comes_out_once() -> None:
    mailbox = Mailbox(100)
    first, second = [span(1)], [span(2), span(3)]
    for batch in (first, second):
        assert mailbox.reserve(10)
        mailbox.put(batch, 10)

    assert mailbox.take(A_MOMENT_S) == [first, second]
    assert mailbox.take(A_MOMENT_S) == []
    assert mailbox.accepted == 3
    assert mailbox.held_bytes == 0


def test_what_has_been_promised_room_takes_it() -> None:
    mailbox = Mailbox(100)

    assert mailbox.reserve(60)
    assert not mailbox.reserve(60)
    mailbox.give_up(60)
    assert mailbox.reserve(60)


def test_a_batch_that_is_larger_than_all_the_room_has_it_alone() -> None:
    mailbox = Mailbox(100)

    assert mailbox.reserve(1_000)
    assert not mailbox.reserve(1)


def test_taking_makes_room_for_what_was_put_in_and_not_for_what_is_expected() -> None:
    mailbox = Mailbox(100)
    assert mailbox.reserve(40)
    assert mailbox.reserve(50)
    mailbox.put([span(1)], 40)

    mailbox.take(A_MOMENT_S)

    assert mailbox.held_bytes == 50
    assert not mailbox.reserve(60)


def test_the_end_waits_for_what_has_been_promised_room() -> None:
    mailbox = Mailbox(100)
    assert mailbox.reserve(10)
    mailbox.close()

    assert mailbox.take(A_MOMENT_S) == []
    assert not mailbox.reserve(1)
    batch = [span(1)]
    mailbox.put(batch, 10)
    assert mailbox.take(A_MOMENT_S) == [batch]
    assert mailbox.take(A_MOMENT_S) is None


def test_who_waits_is_told_of_the_end() -> None:
    mailbox = Mailbox(100)
    with ThreadPoolExecutor(1) as threads:
        taken = threads.submit(mailbox.take, WAIT_S)
        mailbox.close()
        assert taken.result(WAIT_S) is None
