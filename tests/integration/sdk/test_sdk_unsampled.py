"""A call that is not sampled: it is named to the server, the caller gets what the library gives."""

import asyncio
from typing import Any

import openai
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from llmlat_otel.core.attempt import underway
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import faults
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import Settings
from llmlat_semconv.metrics import LLMLAT_PHASE_DURATION

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


def runtime(meters=None):
    """The SDK with a provider that samples nothing, and perhaps somebody who counts."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    clock, settings = Clock(), Settings()
    emitter = Emitter(settings, clock.domain_id, tracer_provider=provider, meter_provider=meters)
    return Runtime(settings, clock, emitter), exporter


@pytest.fixture
def unheard(instrumented):
    """No span is recorded and no point counted; nor is a fault of ours."""
    before = faults()
    sdk, exporter = runtime()
    with running(sdk):
        yield
    assert exporter.get_finished_spans() == ()
    assert faults() == before
    assert underway.get() is None


def parents(server):
    return [headers.get("traceparent", "") for headers, _ in server.requests]


def is_sampled(parent):
    """The lowest of the flags (W3C Trace Context, section 3.2.2.5)."""
    version, _, _, flags = parent.split("-")
    assert version == "00"
    return bool(int(flags, 16) & 1)


def test_the_server_is_told_that_it_is_not_sampled(server, client, unheard):
    client.chat.completions.create(**ASK)
    (parent,) = parents(server)
    assert not is_sampled(parent)


def test_the_stream_is_the_librarys_own(client, unheard):
    with client.chat.completions.create(**ASK, stream=True) as stream:
        assert type(stream) is openai.Stream
        assert len(list(stream)) == 6


def test_the_asynchronous_stream_is_the_librarys_own(server, make_async_client, unheard):
    async def main():
        async with make_async_client() as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            assert type(stream) is openai.AsyncStream
            return [chunk async for chunk in stream]

    assert len(asyncio.run(main())) == 6
    assert not is_sampled(parents(server)[0])


def test_attempts_are_of_one_trace(server, client, unheard):
    server.statuses = [503, 503]
    list(client.chat.completions.create(**ASK, stream=True))
    assert len(parents(server)) == 3
    assert len({parent.split("-")[1] for parent in parents(server)}) == 1


def test_an_error_is_the_librarys_own(server, client, unheard):
    server.statuses = [400]
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(**ASK)


def test_calls_after_it_are_named_too(server, client, unheard):
    for _ in range(3):
        client.chat.completions.create(**ASK)
    assert len({parent.split("-")[1] for parent in parents(server)}) == 3


def test_who_counts_hears_of_it_all_the_same(client, instrumented):
    reader = InMemoryMetricReader()
    sdk, exporter = runtime(MeterProvider([reader], shutdown_on_exit=False))
    with running(sdk):
        list(client.chat.completions.create(**ASK, stream=True))
    assert exporter.get_finished_spans() == ()
    data = reader.get_metrics_data()
    assert data is not None
    counted = [
        metric.name
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert LLMLAT_PHASE_DURATION.name in counted
