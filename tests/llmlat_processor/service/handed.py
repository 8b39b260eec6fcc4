"""Spans that a window lets go, and destinations that keep what is put into them, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.edges.exporter import Counts
from llmlat_processor.edges.journal import Journal
from llmlat_processor.model import INTERNAL, AttributeValue
from llmlat_processor.pipeline import process
from llmlat_processor.service.destinations import Destinations
from llmlat_processor.service.explaining import Explain
from llmlat_processor.service.handing_on import HandingOn, Observe
from llmlat_processor.service.outgoing import Preparation
from llmlat_processor.service.settling import Settling
from llmlat_processor.settings import Deployment, Destination, Explained, Mode
from llmlat_processor.window import Released, Why
from llmlat_processor.wire import Request, WireSpan, decode
from llmlat_processor.wire.skeletons import pack
from llmlat_semconv import attributes as names
from tests.llmlat_processor import otlp
from tests.llmlat_processor.otlp import CHAT, request

INLINE = Deployment(spans=Destination("127.0.0.1:1"))
APART = Deployment(spans=Destination("127.0.0.1:1"), derived=Destination("127.0.0.1:2"))
TAP = Deployment(mode=Mode.TAP, derived=Destination("127.0.0.1:2"))


class Pile(Destinations):
    """Nobody sends what is put into it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.derived: list[Request] = []
        self.is_over = False

    @property
    def has_ended(self) -> bool:
        return self.is_over

    @property
    def counts(self) -> Mapping[str, Counts]:
        spans = sum(one.spans for one in (*self.requests, *self.derived))
        return {"spans": Counts(spans, 0, spans, {})}

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """The spans that were received, as they would arrive."""
        return [s.name for one in self.requests for s in decode(one.content).spans if mine(s)]

    @property
    def made(self) -> int:
        """How many spans were made here."""
        every = (*self.requests, *self.derived)
        return sum(not mine(span) for one in every for span in decode(one.content).spans)

    def put(self, requests: Sequence[Request]) -> None:
        self.requests += requests

    def put_derived(self, requests: Sequence[Request]) -> None:
        self.derived += requests


class Told(Journal):
    """Remembers what it is told; keeps nothing."""

    def __init__(self) -> None:
        self.done: list[tuple[int, int]] = []
        self.appended: list[bytes] = []

    def append(self, content: bytes, spans: int, *, sent: bool = False) -> int:
        self.appended.append(content)
        return 100 + len(self.appended)

    def settle(self, done: Mapping[int, Sequence[int]]) -> None:
        self.done += [(batch, position) for batch in done for position in done[batch]]


class Awaited:
    """A window of which little is asked."""

    def __init__(self, *traces: int) -> None:
        self.published_ids: list[bytes] = []
        self._awaited = [trace.to_bytes(16, "big") for trace in traces]

    def published(self, trace_id: bytes) -> None:
        self.published_ids.append(trace_id)

    def awaits_root_of(self, trace_id: bytes) -> bool:
        return trace_id in self._awaited


def mine(span: WireSpan) -> bool:
    """Whether a span was received."""
    return span.name.startswith("trace ")


def message(
    number: int, *, trace: int = 1, attributes: Mapping[str, AttributeValue] = CHAT
) -> Message:
    """Number 1 is the root of its trace, the others are its children."""
    return otlp.span(
        number,
        trace_id=trace.to_bytes(16, "big"),
        parent=b"" if number == 1 else (1).to_bytes(8, "big"),
        kind=INTERNAL,
        name=f"trace {trace} span {number}",
        attributes=attributes,
    )


def received(
    *messages: Message, batch: int = 7, scope: str = "app", service: str = "adviser"
) -> Sequence[WireSpan]:
    """Spans as a receiver gives them on, once they are in a batch of the journal."""
    resource = {names.SERVICE_NAME: service}
    spans = decode(request(messages, resource, scope).SerializeToString()).spans
    for position, span in enumerate(spans):
        span.batch, span.position = batch, position
    return spans


def released(*numbers: int, trace: int = 1, why: Why = Why.COMPLETE, batch: int = 7) -> Released:
    return Released(received(*(message(n, trace=trace) for n in numbers), batch=batch), why)


def rootless(*numbers: int, trace: int = 1, why: Why = Why.HELD_LONGEST) -> Released:
    """A trace whose root has still to come."""
    spans = released(*numbers, trace=trace).spans
    return Released(spans, why, packed=pack(spans, tight=True))


def handing_on(
    pile: Pile,
    journal: Journal | None = None,
    *,
    deployment: Deployment = INLINE,
    explain: Explain = process,
    observe: Observe = lambda _explained: None,
    explained: Explained = Explained.ALL,
) -> tuple[HandingOn, Settling]:
    settling = Settling(journal)
    handing = HandingOn(
        explain,
        explained,
        Preparation(deployment),
        pile,
        observe,
        lambda _delay_s: None,
        journal,
        settling,
    )
    return handing, settling
