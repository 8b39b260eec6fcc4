"""The journal is told of spans once, when the last request that they depend on has had its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.edges.journal import Journal
from llmlat_processor.service.settling import Settling
from llmlat_processor.settings import JournalSettings
from llmlat_processor.wire import Request, WireSpan, decode
from tests.llmlat_processor.otlp import request, span


class Told(Journal):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.done: list[tuple[int, int]] = []

    def settle(self, done: Mapping[int, Sequence[int]]) -> None:
        self.done += [(batch, position) for batch in done for position in done[batch]]


def received(batch: int, count: int) -> Sequence[WireSpan]:
    spans = decode(request(span(n) for n in range(1, count + 1)).SerializeToString()).spans
    for position, one in enumerate(spans):
        one.batch, one.position = batch, position
    return spans


def requests(count: int) -> Sequence[Request]:
    return [Request(b"%d" % number, 1) for number in range(count)]


def test_nothing_is_settled_before_the_last_request_of_a_trace() -> None:
    journal = Told()
    settling = Settling(journal)
    first, second = settling.marked(requests(2), received(7, 3), {})

    settling.settled([second])
    assert journal.done == []
    settling.settled([first])

    assert sorted(journal.done) == [(7, 0), (7, 1), (7, 2)]


def test_what_is_not_sent_is_settled_at_once() -> None:
    journal = Told()

    Settling(journal).marked((), received(7, 2), {})

    assert sorted(journal.done) == [(7, 0), (7, 1)]


def test_skeletons_go_with_the_trace_that_they_were_kept_for() -> None:
    journal = Told()
    settling = Settling(journal)

    settling.settled(settling.marked(requests(1), received(7, 1), {3: [0, 1]}))

    assert sorted(journal.done) == [(3, 0), (3, 1), (7, 0)]


def test_without_a_journal_requests_stay_as_they_are() -> None:
    settling = Settling(None)
    sent = requests(2)

    assert settling.marked(sent, received(-1, 2), {}) is sent
    settling.settled(sent)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.randoms())
def test_every_span_is_settled_once_in_whatever_order_requests_end(
    counts: list[int], random: object
) -> None:
    journal = Told()
    settling = Settling(journal)
    marked: list[Request] = []
    for batch, count in enumerate(counts):
        marked += settling.marked(requests(count), received(batch, 2), {})
    random.shuffle(marked)  # type: ignore[attr-defined]

    for one in marked:
        settling.settled([one])

    assert sorted(journal.done) == [(batch, n) for batch in range(len(counts)) for n in (0, 1)]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "journal", JournalSettings())
    yield opened
    opened.close()


def test_a_real_journal_forgets_a_batch_of_which_all_has_gone(journal: Journal) -> None:
    content = request(span(n) for n in (1, 2)).SerializeToString()
    spans = received(journal.append(content, 2), 2)
    settling = Settling(journal)

    settling.settled(settling.marked(requests(1), spans[:1], {}))
    assert journal.batches == 1
    settling.settled(settling.marked(requests(1), spans[1:], {}))

    assert journal.batches == 0
