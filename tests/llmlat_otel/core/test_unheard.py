"""Calls that nobody will hear of: not sampled, and no metrics are kept. They are named upstream."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import TraceFlags

from llmlat_otel.core.attempt import underway
from llmlat_otel.core.call import call_underway
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import faults
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.core.wrapping import run_in
from llmlat_otel.settings import Settings
from llmlat_otel.testing import FakeAsyncStream, FakeStream, recorded
from llmlat_semconv.metrics import GEN_AI_CLIENT_INFERENCE_DURATION


@contextmanager
def unheard(clock):
    provider = TracerProvider(ALWAYS_OFF, Resource({}), shutdown_on_exit=False)
    emitter = Emitter(Settings(), clock.domain_id, tracer_provider=provider)
    with running(Runtime(Settings(), clock, emitter)):
        yield provider.get_tracer("app")


def test_the_peer_is_told_the_trace_and_that_it_is_not_sampled(clock, library):
    with unheard(clock) as tracer, tracer.start_as_current_span("app") as parent:
        library.create(library.send, model="m")
        trace_id = f"{parent.get_span_context().trace_id:032x}"
    (headers,) = library.headers
    version, trace, _, flags = headers["traceparent"].split("-")
    assert (version, trace) == ("00", trace_id)
    assert not int(flags, 16) & TraceFlags.SAMPLED


def test_each_retry_names_the_same_parent(clock, library):
    def retried():
        library.send(503)
        library.send(200)

    with unheard(clock):
        library.create(retried, model="m")
    assert len({headers["traceparent"] for headers in library.headers}) == 1


@pytest.mark.parametrize("stream", [FakeStream, FakeAsyncStream])
def test_the_caller_gets_the_librarys_own_stream(clock, library, stream):
    theirs = stream(clock, [])

    def streamed():
        library.send()
        return theirs

    with unheard(clock):
        assert library.create(streamed, model="m", stream=True) is theirs


def test_an_asynchronous_call_gives_out_what_the_library_gives(clock, library):
    async def answer():
        library.send()
        return "whole"

    with unheard(clock):
        assert asyncio.run(library.create(answer, model="m")) == "whole"


def test_nothing_is_current_or_under_way_afterwards(clock, library):
    with unheard(clock) as tracer, tracer.start_as_current_span("app"):
        library.create(library.send, model="m")
        assert underway.get() is None


def test_the_span_is_current_while_the_request_is_sent(clock, library):
    seen: list[tuple[Any, object]] = []

    def send():
        call = call_underway()
        assert call is not None
        attempt = call.begin_attempt(None)
        run_in(attempt, lambda: seen.append((underway.get(), call_underway())), (), {})

    with unheard(clock):
        library.create(send, model="m")
    ((attempt, call),) = seen
    assert not attempt.is_heard
    assert call is None


@pytest.mark.parametrize("error", [ValueError("theirs"), KeyboardInterrupt()])
def test_errors_pass_as_they_are(clock, library, error):
    def failing():
        library.send()
        raise error

    before = faults()
    with unheard(clock), pytest.raises(type(error)) as raised:
        library.create(failing, model="m")
    assert raised.value is error
    assert faults() == before
    assert underway.get() is None


def test_where_metrics_are_kept_a_call_that_is_not_sampled_counts(clock, library):
    with recorded(clock=clock, sampler=ALWAYS_OFF) as record:
        library.create(library.send, model="m")
    assert record.spans == ()
    assert GEN_AI_CLIENT_INFERENCE_DURATION.name in record.points()
