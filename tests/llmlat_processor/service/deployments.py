"""Deployments of a processor for tests: short pauses, sinks on loopback, a state in a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.edges.journal import Journal
from llmlat_processor.pipeline import process
from llmlat_processor.service import Processor, run
from llmlat_processor.service.explaining import Explain
from llmlat_processor.service.processor import JOURNAL
from llmlat_processor.service.sharded import Sharded
from llmlat_processor.settings import (
    INLINE,
    Delivery,
    Deployment,
    Destination,
    JournalSettings,
    Listener,
    Settings,
)
from llmlat_processor.window import Limits
from tests.llmlat_processor.forwarding import METHOD
from tests.llmlat_processor.otlp import request
from tests.llmlat_processor.sink import Sink, sink

WAIT_S = 20
LISTENER = Listener("127.0.0.1:0")
QUICK = Delivery(first_retry_s=0.001, longest_retry_s=0.002)
HURRIED = replace(QUICK, drain_s=0.02)
AT_ONCE = replace(INLINE, window=Limits(idle_ns=0, grace_ns=0), tick_s=0.005)
PATIENT = replace(INLINE, tick_s=0.005)
KEPT = JournalSettings()


def inline(
    address: str,
    state: Path | None = None,
    *,
    settings: Settings = AT_ONCE,
    delivery: Delivery = QUICK,
) -> Deployment:
    """Spans in, spans out; with a journal where there is a folder for it."""
    return Deployment(
        grpc=LISTENER,
        spans=Destination(address, delivery=delivery),
        settings=settings,
        journal=None if state is None else KEPT,
        state=state,
    )


@contextmanager
def running(deployment: Deployment, explain: Explain = process) -> Iterator[Processor]:
    """A processor at work, whose books are right at the end."""
    processor = Processor(deployment, explain)
    try:
        yield processor
    finally:
        processor.stop()
        assert processor.books().balances


@contextmanager
def deployed(deployment: Deployment) -> Iterator[Processor | Sharded]:
    """The same as an operator has it, with workers or without."""
    one = run(deployment)
    try:
        yield one
    finally:
        one.stop()
        assert one.books().balances


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    deadline_s = time.monotonic() + WAIT_S
    pause = Event()
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come"
        pause.wait(0.005)


def post(one: Processor | Sharded, *spans: Message, scope: str = "app") -> bytes:
    """Send spans over gRPC; the answer."""
    with grpc.insecure_channel(one.addresses[0]) as channel:
        content = request(spans, scope=scope).SerializeToString()
        answer: bytes = channel.unary_unary(METHOD)(content, timeout=WAIT_S)
        return answer


def nobody() -> str:
    """An address where somebody was, and may be again."""
    with sink() as gone:
        return gone.address


def kept_batches(state: Path) -> int:
    """How many batches a journal has that nobody uses now."""
    journal = Journal(state / JOURNAL, KEPT)
    try:
        return journal.batches
    finally:
        journal.close()


def names(destination: Sink, scope: str = "app") -> Sequence[str]:
    """The spans of one scope that have arrived."""
    return sorted(span.name for _, of, span in destination.spans if of.scope.name == scope)
