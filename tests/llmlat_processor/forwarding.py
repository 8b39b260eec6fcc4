"""A processor in this process between a sender and a sink, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.model import INTERNAL
from llmlat_processor.service import Processor
from llmlat_processor.settings import INLINE, Delivery, Deployment, Destination, Listener, Settings
from llmlat_processor.views.jaeger_warnings import WARNINGS
from llmlat_processor.window import Limits
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from tests.llmlat_processor import otlp
from tests.llmlat_processor.otlp import request
from tests.llmlat_processor.sink import SERVICE as EXPORT_SERVICE
from tests.llmlat_processor.sink import Sink

METHOD = f"/{EXPORT_SERVICE}/Export"
AT_ONCE = replace(INLINE, window=Limits(idle_ns=0, grace_ns=0), tick_s=0.01)
PATIENT = replace(AT_ONCE, window=Limits())
QUICK = Delivery(first_retry_s=0.001, longest_retry_s=0.002)
MADE_FOR_ONE_ROW = 2
"""The lane of a root that is one section: its own root and that section."""


def forward(
    listen: str, destination: str, settings: Settings = AT_ONCE, delivery: Delivery = QUICK
) -> Processor:
    """From one address to another, and nothing on disk."""
    spans = Destination(destination, delivery=delivery)
    return Processor(Deployment(grpc=Listener(listen), spans=spans, settings=settings))


@contextmanager
def forwarding(
    destination: Sink, settings: Settings = AT_ONCE, delivery: Delivery = QUICK
) -> Iterator[Processor]:
    processor = forward("127.0.0.1:0", destination.address, settings, delivery)
    try:
        yield processor
    finally:
        processor.stop()
        assert_balanced(processor)
        assert processor.books().held == processor.books().queued == 0


def assert_balanced(processor: Processor) -> None:
    books = processor.books()
    accounted = books.sent + books.repeated + books.held + books.queued
    assert books.received + books.added == accounted + sum(books.dropped.values())


def span(number: int, *, trace: int = 1, root: bool = False, **fields: Any) -> Message:
    """Number 1, or one that is told so, is the root; the others are its children."""
    fields.setdefault("attributes", {})
    parent = b"" if root or number == 1 else (1).to_bytes(8, "big")
    return otlp.span(
        number,
        trace_id=trace.to_bytes(16, "big"),
        parent=parent,
        kind=INTERNAL,
        name=f"{trace}/{number}",
        **fields,
    )


def send(processor: Processor, *spans: Message, scope: str = "app") -> None:
    with grpc.insecure_channel(processor.address) as channel:
        export = channel.unary_unary(METHOD)
        export(request(spans, scope=scope).SerializeToString(), timeout=10)


def originals(destination: Sink) -> list[Message]:
    """What has arrived of what was sent, each without what was added to it."""
    found = []
    for _, scope_spans, message in destination.spans:
        if scope_spans.scope.name != OWN_SCOPE:
            bare = Message.FromString(message.SerializeToString())
            kept = [pair for pair in bare.attributes if not pair.key.startswith(OURS)]
            del bare.attributes[:]
            bare.attributes.extend(kept)
            del bare.events[:]
            found.append(bare)
    return found


OURS = (names.LLMLAT_CRITICAL_PATH_DURATION.partition(".")[0], WARNINGS)


def lane_of(destination: Sink) -> list[Message]:
    return [message for _, scope, message in destination.spans if scope.scope.name == OWN_SCOPE]
