"""Another producer: spans of OpenTelemetry's own SDK, with wall stamps and nothing else."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Tracer

from llmlat_semconv import attributes as names
from llmlat_semconv.spans import phase_span_name, tool_span_name
from llmlat_semconv.values import OperationName

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class PlainServer:
    """An ASGI application each of whose requests is a SERVER span, as any producer makes it.

    Args:
        application: what answers.
        late_ns: by how much later than it did it says that it ended.
    """

    def __init__(self, application: Application, late_ns: int = 0) -> None:
        self._application = application
        self._late_ns = late_ns
        self._provider = TracerProvider()
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
        trace.set_tracer_provider(self._provider)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve; at the end of the server's life, export what is left."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            self._provider.shutdown()
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        name, parent = f"POST {scope['path']}", propagate.extract(headers)
        with _late(_tracer().start_span(name, parent, SpanKind.SERVER), self._late_ns):
            await self._application(scope, receive, send)


def plain_phase(name: str, late_ns: int = 0) -> AbstractContextManager[object]:
    """A phase of the current span, by its name alone; it says that it ended so much later."""
    says = {names.LLMLAT_PHASE_NAME: name}
    return _late(_tracer().start_span(phase_span_name(name), attributes=says), late_ns)


def plain_tool(name: str) -> AbstractContextManager[object]:
    """A tool's run, as the conventions name it."""
    says = {names.GEN_AI_OPERATION_NAME: OperationName.EXECUTE_TOOL.value}
    return _tracer().start_as_current_span(tool_span_name(name), attributes=says)


@contextmanager
def _late(span: Span, late_ns: int) -> Iterator[None]:
    try:
        with trace.use_span(span):
            yield
    finally:
        span.end(time.time_ns() + late_ns)


def _tracer() -> Tracer:
    return trace.get_tracer("plain")
