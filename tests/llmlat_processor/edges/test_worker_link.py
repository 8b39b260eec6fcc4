"""Spans on their way to another process, and what comes of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.edges.worker_link import Answer, WorkerLink
from llmlat_processor.settings import Listener
from llmlat_processor.wire import Decoded
from tests.llmlat_processor.otlp import request, span
from tests.llmlat_processor.receiving import MIB, Taken
from tests.llmlat_processor.sink import asking_to_wait, failing, saying, sink

WAIT_S = 20
CONTENT = request([span(1)]).SerializeToString()


@pytest.fixture
def address() -> Iterator[str]:
    """Of a socket in a folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="llmlat-", dir="/tmp") as folder:
        yield f"unix:{Path(folder) / '0.sock'}"


def test_spans_reach_a_receiver_in_a_folder(address: str) -> None:
    taken = Taken()
    receiver = GrpcReceiver(Listener(address), taken, max_message_bytes=MIB)
    link = WorkerLink(address)
    answer = link.send(CONTENT).result(WAIT_S)
    link.close()
    receiver.stop()

    assert (answer, taken.numbers) == (Answer(), [1])


def test_what_was_damaged_is_told_and_the_words_why_nothing_was_taken(address: str) -> None:
    def take(_decoded: Decoded) -> str:
        return "too many spans are waiting"

    bad = span(2)
    bad.span_id = b""
    receiver = GrpcReceiver(Listener(address), take, max_message_bytes=MIB)
    link = WorkerLink(address)
    damaged = link.send(request([bad]).SerializeToString()).result(WAIT_S)
    full = link.send(CONTENT).result(WAIT_S)
    link.close()
    receiver.stop()

    assert (damaged.why_not, damaged.rejected) == ("", 1)
    assert (full.why_not, full.rejected) == ("too many spans are waiting", 0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (failing(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large"), "too large"),
        (failing(grpc.StatusCode.INTERNAL, ""), "INTERNAL"),
        (asking_to_wait(grpc.StatusCode.UNAVAILABLE, 1), "later"),
        (saying(b"\xff"), "Error parsing message"),
    ],
)
def test_whatever_is_no_success_says_why(answer: object, words: str) -> None:
    with sink(answer) as other:  # type: ignore[arg-type]
        link = WorkerLink(other.address)
        why_not = link.send(CONTENT).result(WAIT_S).why_not
        link.close()

    assert words in why_not


def test_where_nobody_is_that_is_said_at_once_and_somebody_is_found_later(address: str) -> None:
    link = WorkerLink(address)
    assert link.send(CONTENT).result(WAIT_S).why_not
    receiver = GrpcReceiver(Listener(address), Taken(), max_message_bytes=MIB)
    while link.send(CONTENT).result(WAIT_S).why_not:
        pass
    link.close()
    receiver.stop()
