"""Streams that ask the peer for something only when they are first pulled."""

from __future__ import annotations

import gc
import weakref

import pytest
from opentelemetry import context as contexts
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import TraceFlags

from llmlat_otel.core.attempt import underway
from llmlat_otel.core.call import call_underway
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import faults
from llmlat_otel.core.late_streams import timed_when_pulled
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind
from tests.llmlat_otel.core.conftest import FakeReader

TEXT = ContentKind.TEXT


@pytest.fixture
def late(library):
    """A function that gives out a generator, which sends when it runs."""

    def pieces(count, fail):
        library.send()
        for _ in range(count):
            library.wait(10)
            yield TEXT
        if fail:
            raise ValueError("cut")

    def create(count=2, *, fail=False, **_):
        return pieces(count, fail)

    before = faults()
    yield wrap(create, timed_when_pulled("fake.late", FakeReader))
    assert faults() == before


def test_the_call_begins_with_the_first_pull(late, clock, record):
    stream = late(model="m", stream=True)
    clock.advance(1_000 * MS)
    began_ns = clock.monotonic_ns
    assert list(stream) == [TEXT, TEXT]
    (span,) = record.spans[:1]
    assert span.attributes[names.LLMLAT_CLOCK_MONOTONIC_START] == began_ns
    assert span.attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] == 0.02
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"


def test_it_is_under_way_until_there_is_an_event(late, record):
    stream = late(model="m")
    assert call_underway() is None
    next(stream)
    assert (call_underway(), underway.get()) == (None, None)
    assert contexts.get_current() == {}


def test_what_was_asked_is_kept_no_longer_than_it_takes_to_ask(late, record):
    class Asked:
        """Stands for a long prompt."""

    asked = Asked()
    kept = weakref.ref(asked)
    stream = late(model="m", messages=asked)
    del asked
    next(stream)
    assert kept() is None


def test_it_is_made_no_more_when_it_has_failed(late, record):
    with pytest.raises(ValueError, match="cut"):
        next(late(0, model="m", fail=True))
    assert (call_underway(), underway.get()) == (None, None)
    assert record.spans[0].attributes[names.ERROR_TYPE] == "ValueError"


def test_one_that_gives_nothing_was_a_call_all_the_same(late, record):
    assert list(late(0, model="m")) == []
    assert record.spans[0].attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 0


@pytest.mark.parametrize("close", [True, False])
def test_one_that_is_never_pulled_was_none(late, library, record, close):
    stream = late(model="m")
    if close:
        stream.close()
    del stream
    gc.collect()
    assert (record.spans, library.headers) == ((), [])
    assert (call_underway(), underway.get()) == (None, None)


def test_what_is_no_stream_is_given_out_as_it_is(record):
    whole = object()
    create = wrap(lambda: whole, timed_when_pulled("fake.late", FakeReader))
    assert create() is whole
    assert record.spans == ()


def test_a_stream_within_a_pull_of_the_same_is_the_same_call(late, record):
    def outer(**kwargs):
        yield from late(**kwargs)

    create = wrap(outer, timed_when_pulled("fake.outer", FakeReader))
    assert list(create(model="m")) == [TEXT, TEXT]
    operations = [each.name for each in record.spans if each.name.startswith("chat")]
    assert operations == ["chat m"]


def test_a_call_of_which_nobody_is_to_tell_is_not_timed(record, clock):
    create = wrap(lambda **_: iter([TEXT]), timed_when_pulled("fake.late", FakeReader))
    with suppress_instrumentation():
        assert list(create(model="m")) == [TEXT]
    assert record.spans == ()


def test_a_stream_that_nobody_hears_of_is_named_to_the_peer_and_no_more(
    late, library, clock, monkeypatch
):
    read = []
    monkeypatch.setattr(FakeReader, "event", lambda *_: read.append(1))
    provider = TracerProvider(ALWAYS_OFF, Resource({}), shutdown_on_exit=False)
    emitter = Emitter(Settings(), clock.domain_id, tracer_provider=provider)
    with running(Runtime(Settings(), clock, emitter)):
        assert list(late(3, model="m")) == [TEXT] * 3
    flags = library.headers[0]["traceparent"].split("-")[3]
    assert not int(flags, 16) & TraceFlags.SAMPLED
    assert read == []


def test_a_reader_that_cannot_be_made_costs_the_timing_alone(record):
    def broken(*_):
        raise TypeError("no reader")

    create = wrap(lambda **_: iter([TEXT, TEXT]), timed_when_pulled("fake.broken", broken))
    before = faults().get("fake.broken", 0)
    assert list(create(model="m")) == [TEXT, TEXT]
    assert faults()["fake.broken"] == before + 1
    assert record.spans == ()
