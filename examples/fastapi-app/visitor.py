"""A visitor of the service, which knows OpenTelemetry only: it begins the trace, and asks once."""

from __future__ import annotations

import os

import httpx2
from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

__all__ = ["main"]

QUESTION = "Where did the time of my request go?"

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer(__name__)


@tracer.start_as_current_span("ask", kind=trace.SpanKind.CLIENT)
def ask(client: httpx2.Client) -> None:
    """One request, until the last piece of the answer has been shown."""
    headers: dict[str, str] = {}
    propagate.inject(headers)  # traceparent: what the service does belongs to this trace
    question = {"question": QUESTION}
    with client.stream("GET", "/answer", params=question, headers=headers) as response:
        for piece in response.iter_text():
            print(piece, end="", flush=True)
    print("\n")


def main() -> None:
    """Ask the service behind EXAMPLE_URL."""
    url = os.environ.get("EXAMPLE_URL", "http://127.0.0.1:8000")
    with httpx2.Client(base_url=url, timeout=None) as client:
        ask(client)


if __name__ == "__main__":
    main()
