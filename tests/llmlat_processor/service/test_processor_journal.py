"""Nothing that was accepted is lost over an end of the processor, and nothing is sent twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.journal import Journal
from llmlat_processor.edges.receiver import Take
from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.service import Processor, intake
from llmlat_processor.service.doors import Doors, Receiver
from llmlat_processor.service.doors import opened as really_opened
from llmlat_processor.service.processor import JOURNAL
from llmlat_processor.settings import Deployment, Destination, JournalSettings, Mode
from llmlat_processor.window import SECOND_NS, Limits
from llmlat_processor.wire import decode
from tests.llmlat_processor.forwarding import lane_of, span
from tests.llmlat_processor.otlp import request
from tests.llmlat_processor.service.deployments import (
    AT_ONCE,
    HURRIED,
    KEPT,
    LISTENER,
    QUICK,
    inline,
    kept_batches,
    names,
    nobody,
    post,
    running,
    until,
)
from tests.llmlat_processor.sink import failing, sink

LEAVES_SOON = replace(
    AT_ONCE, window=Limits(idle_ns=SECOND_NS // 50, grace_ns=0, hold_max_ns=SECOND_NS // 50)
)


class Seen:
    """The pipeline, and how large the traces were that it has explained."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, spans: Iterable[Span], assumptions: Assumptions) -> ExplainedTrace:
        every = list(spans)
        self.sizes.append(len(every))
        return process(every, assumptions)


def left(state: Path, *requests: Sequence[int]) -> Journal:
    """What an earlier run has left: a request for each trace, of so many numbers."""
    journal = Journal(state / JOURNAL, KEPT)
    for trace, numbers in enumerate(requests, 1):
        spans = [span(number, trace=trace) for number in numbers]
        journal.append(request(spans, scope="app").SerializeToString(), len(spans))
    return journal


def test_what_could_not_be_sent_is_sent_by_the_next_run_once(tmp_path: Path) -> None:
    address = nobody()
    with running(inline(address, tmp_path, delivery=HURRIED)) as first:
        post(first, span(1), span(2))
        until(lambda: first.books().traces == 1)
    books = first.books()
    assert (books.sent, books.dropped, books.queued > 2) == (0, {}, True)

    with sink(address=address) as destination, running(inline(address, tmp_path)) as second:
        until(lambda: second.books().traces == 1)

    assert names(destination) == ["1/1", "1/2"]
    assert (second.books().replayed, second.books().sent - second.books().added) == (2, 2)
    assert kept_batches(tmp_path) == 0


def test_what_was_held_at_the_end_is_sent_before_it(tmp_path: Path) -> None:
    patient = replace(AT_ONCE, window=Limits())
    with sink() as destination:
        with running(inline(destination.address, tmp_path, settings=patient)) as one:
            post(one, span(1), span(2))
            assert one.books().held == 2
        assert names(destination) == ["1/1", "1/2"]

    assert kept_batches(tmp_path) == 0


def test_a_root_finds_what_went_before_it_in_an_earlier_run(tmp_path: Path) -> None:
    seen = Seen()
    with sink() as destination:
        deployment = inline(destination.address, tmp_path, settings=LEAVES_SOON)
        with running(deployment) as first:
            post(first, span(2), span(3))
            destination.wait_for_spans(2)
        assert kept_batches(tmp_path) == 1
        with running(deployment, seen) as second:
            post(second, span(1))
            until(lambda: second.books().traces == 1)

    assert (seen.sizes, names(destination)) == ([3], ["1/1", "1/2", "1/3"])
    assert (second.books().received, kept_batches(tmp_path)) == (1, 0)


def test_positions_that_are_settled_are_not_sent_again(tmp_path: Path) -> None:
    journal = left(tmp_path, (1, 2, 3))
    journal.settle({1: [1, 2]})
    journal.close()

    with sink() as destination, running(inline(destination.address, tmp_path)) as one:
        destination.wait_for_spans(1)

    assert names(destination) == ["1/1"]
    assert (one.books().replayed, kept_batches(tmp_path)) == (1, 0)


def test_an_end_while_the_journal_is_being_read_leaves_the_rest_in_it(tmp_path: Path) -> None:
    left(tmp_path, *[(1, 2)] * 5).close()
    address = nobody()
    full = inline(address, tmp_path, delivery=replace(HURRIED, queue_bytes=1))
    with running(full) as first:
        until(lambda: first.books().traces == 1)
        assert first.why_not_ready()
    assert (first.books().replayed, kept_batches(tmp_path)) == (2, 5)

    with sink(address=address) as destination, running(inline(address, tmp_path)) as second:
        until(lambda: second.books().traces == 5)

    assert len(names(destination)) == len({*names(destination)}) == 10
    assert kept_batches(tmp_path) == 0


def test_what_comes_while_it_starts_is_not_taken_for_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(doors: Doors, take: Take, *rest: Any) -> Sequence[Receiver]:
        take(decode(request([span(1)], scope="app").SerializeToString()))
        return really_opened(doors, take, *rest)

    monkeypatch.setattr(intake, "opened", opened)
    with sink() as destination, running(inline(destination.address, tmp_path)) as one:
        until(lambda: one.books().traces == 1)

    books = one.books()
    assert (books.received, books.replayed, books.repeated) == (1, 0, 0)


def test_who_sends_is_told_that_the_journal_is_full(tmp_path: Path) -> None:
    with sink() as destination:
        deployment = inline(destination.address, tmp_path)
        small = replace(deployment, journal=JournalSettings(max_bytes=10))
        with running(small) as one:
            with pytest.raises(grpc.RpcError, match="the journal is full") as refused:
                post(one, span(1))
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE

    assert (one.books().received, one.books().other) == (0, {"postponed": 1})


def test_what_the_destination_refuses_for_good_is_not_kept(tmp_path: Path) -> None:
    answers = [failing(grpc.StatusCode.INVALID_ARGUMENT)] * 3
    with sink(*answers) as destination, running(inline(destination.address, tmp_path)) as one:
        post(one, span(1))
        until(lambda: bool(one.books().dropped))

    assert (one.books().queued, kept_batches(tmp_path)) == (0, 0)


def test_a_journal_is_of_one_processor_alone(tmp_path: Path) -> None:
    deployment = inline(nobody(), tmp_path)
    with running(deployment), pytest.raises(OSError, match="another processor uses it"):
        Processor(deployment)


# ── Tap, and lanes that go elsewhere ─────────────────────────────────────────────────────────────


def test_a_lane_that_a_tap_could_not_send_is_made_again_by_the_next_run(tmp_path: Path) -> None:
    address = nobody()
    tap = Deployment(Mode.TAP, LISTENER, settings=AT_ONCE, journal=KEPT, state=tmp_path)
    with running(replace(tap, derived=Destination(address, delivery=HURRIED))) as first:
        post(first, span(1), span(2))
        until(lambda: first.books().traces == 1)
    assert (first.books().dropped, kept_batches(tmp_path)) == ({}, 1)

    again = replace(tap, derived=Destination(address, delivery=QUICK))
    with sink(address=address) as destination, running(again):
        until(lambda: bool(lane_of(destination)))

    assert (names(destination), kept_batches(tmp_path)) == ([], 0)


def test_a_lane_that_goes_elsewhere_is_lost_at_the_end_and_the_books_say_so(
    tmp_path: Path,
) -> None:
    elsewhere = Destination(nobody(), delivery=HURRIED)
    with sink() as destination:
        deployment = replace(inline(destination.address, tmp_path), derived=elsewhere)
        with running(deployment) as one:
            post(one, span(1), span(2))
            destination.wait_for_spans(2)

    books = one.books()
    assert names(destination) == ["1/1", "1/2"]
    assert (books.queued, books.dropped) == (0, {"shutdown": books.added})
    assert kept_batches(tmp_path) == 0
