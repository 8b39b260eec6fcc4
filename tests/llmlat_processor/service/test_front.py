"""What senders are told by the front of several workers, whatever these answer."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from llmlat_processor.edges.replies import success
from llmlat_processor.edges.worker_link import Answer
from llmlat_processor.metrics.own import Usage
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.model.status import Books, Status
from llmlat_processor.service.sharded import Sharded
from llmlat_processor.service.worker import Ask, Report
from llmlat_processor.wire import decode
from llmlat_processor.wire.sharding import unread
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor.forwarding import span
from tests.llmlat_processor.otlp import request

BOTH = request([span(1, trace=2), span(1, trace=3), span(2, trace=3)]).SerializeToString()
SECOND, LAST = [*FindingKind][1], [*FindingKind][-1]


class Member:
    """A worker that answers as it is told to."""

    def __init__(self, answer: Answer, *, is_up: bool = True) -> None:
        self._answer = answer
        self.is_up = is_up
        self.not_ready = "" if is_up else "it is being started"
        self.got: list[bytes] = []
        self.found: list[FindingCount] = []

    def send(self, content: bytes) -> Future[Answer]:
        self.got.append(content)
        answer: Future[Answer] = Future()
        answer.set_result(self._answer)
        return answer

    def report(self, _ask: Ask = Ask.STATUS) -> Report:
        return Report(Status(Books()), (), self.found, Usage(0, 0))


def front(*members: Member) -> Sharded:
    one = Sharded.__new__(Sharded)
    one._crew = members  # type: ignore[assignment]
    return one


def test_each_worker_gets_what_is_its_own() -> None:
    members = Member(Answer()), Member(Answer())

    assert front(*members)._take(unread(BOTH)) == ""
    got = [[one.name for part in member.got for one in decode(part).spans] for member in members]
    assert got == [["2/1"], ["3/1", "3/2"]]


def test_it_is_taken_only_where_all_have_taken_it() -> None:
    words = front(Member(Answer()), Member(Answer("it is full")))._take(unread(BOTH))

    assert words == "it is full"


def test_nobody_gets_anything_while_one_that_is_wanted_is_away() -> None:
    """Senders come again with all of it, as often as they are asked to."""
    there, away = Member(Answer()), Member(Answer(), is_up=False)

    assert front(there, away)._take(unread(BOTH)) == "it is being started"
    assert there.got == away.got == []


def test_one_that_is_away_and_not_wanted_keeps_nobody_waiting() -> None:
    away = Member(Answer(), is_up=False)
    wanted = request([span(1, trace=2)]).SerializeToString()

    assert front(Member(Answer()), away)._take(unread(wanted)) == ""


@pytest.mark.parametrize("rejected", [0, 2])
def test_what_a_worker_says_is_passed_on(rejected: int) -> None:
    decoded = unread(BOTH)
    front(Member(Answer()), Member(Answer("", rejected, "links: damaged")))._take(decoded)
    partial = success(decoded).partial_success

    assert partial.rejected_spans == rejected
    assert "links: damaged" in partial.error_message


def test_what_was_found_is_told_kind_by_kind_the_most_frequent_first() -> None:
    first, second = Member(Answer()), Member(Answer())
    first.found = [FindingCount(LAST, "a", "b", 9), FindingCount(SECOND, "a", "b", 1)]
    second.found = [FindingCount(SECOND, "c", "d", 2), FindingCount(LAST, "a", "b", 1)]

    assert front(first, second).found() == [
        FindingCount(SECOND, "c", "d", 2),
        FindingCount(SECOND, "a", "b", 1),
        FindingCount(LAST, "a", "b", 10),
    ]
