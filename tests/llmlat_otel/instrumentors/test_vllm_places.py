"""vLLM in several processes, on several hosts, beside spans of its own: who knows what."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from llmlat_otel.core import native_spans
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from tests.llmlat_otel.instrumentors.fake_vllm import request_of
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES, FinishReason
from tests.llmlat_otel.instrumentors.vllm_timed import (
    LAST,
    OtherClock,
    cut,
    elsewhere,
    engine_of,
    phases,
    requests,
    the_request,
)

pytestmark = pytest.mark.usefixtures("nothing_has_failed")

each_version = pytest.mark.parametrize("version", SHAPES)

TRACE_ID, SPAN_ID = 0xABC, 0xDEF
CALLER = {"traceparent": f"00-{TRACE_ID:032x}-{SPAN_ID:016x}-01", "tracestate": "a=b"}


def whole(engine, clock):
    """One request with all that there is to tell."""
    engine.api.tokenize = lambda: clock.advance(2 * MS)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    engine.step({"a": 1})
    engine.step({}, evicted=["a"])
    engine.step({"a": 5}, a=0)


LENGTHS = {"tokenize": 0.002, "queue": 0.005, "prefill": 0.01, "decode": 0.03, "preempted": 0.01}
IN_CORE = {name: length for name, length in LENGTHS.items() if name != "tokenize"}


def lengths(span):
    """Phases as the span says them."""
    said = {each.value: span.attributes.get(duration_attribute(each)) for each in Phase}
    return {name: length for name, length in said.items() if length is not None}


# Where the EngineCore is


@each_version
def test_a_core_in_another_process_of_the_same_host(version, clock, record):
    engine = engine_of(version, clock, in_core=elsewhere(clock))
    whole(engine, clock)
    found = {name: (end - start) / 1000 for name, start, end in phases(record, the_request(record))}
    assert found == LENGTHS


@each_version
@pytest.mark.parametrize("ahead_ns", [-900 * MS, 0, 7_000_000_000 * MS])
def test_of_a_core_on_another_host_only_lengths_are_said(version, ahead_ns, clock, record):
    other = OtherClock(clock, ahead_ns)
    engine = engine_of(version, clock, in_core=elsewhere(other), core_now_ns=other.now_ns)
    whole(engine, clock)
    span = the_request(record)
    assert phases(record, span) == [("tokenize", 0, 2)]
    assert lengths(span) == pytest.approx(IN_CORE)
    assert names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN not in span.attributes
    assert span.attributes[names.LLMLAT_ENGINE_REQUESTS_WAITING] == 0
    assert span.attributes[names.LLMLAT_DECODE_TOKENS] == 2


def test_what_is_given_up_here_has_no_end_on_another_host(clock, record):
    other = OtherClock(clock, 7_000_000_000 * MS)
    engine = engine_of(LAST, clock, in_core=elsewhere(other), core_now_ns=other.now_ns)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    engine.step({"a": 1})
    clock.advance(90 * MS)
    engine.abort("a")
    span = the_request(record)
    assert lengths(span) == pytest.approx({"queue": 0.005, "prefill": 0.01, "decode": 0.01})
    assert span.attributes[names.LLMLAT_STREAM_END] == "cancelled"


@each_version
def test_a_core_without_us_tells_by_the_events_of_vllm(version, clock, record):
    engine = engine_of(version, clock, has_plugin_in_core=False)
    whole(engine, clock)
    span = the_request(record)
    # Whose clock that was nobody has said.
    assert phases(record, span) == [("tokenize", 0, 2)]
    assert lengths(span) == pytest.approx(IN_CORE)
    assert span.attributes[names.LLMLAT_PREEMPTION_COUNT] == 1
    assert names.LLMLAT_ENGINE_REQUESTS_WAITING not in span.attributes


@each_version
def test_a_core_that_tells_nothing_at_all(version, clock, record):
    engine = engine_of(version, clock, has_plugin_in_core=False, log_stats=False)
    whole(engine, clock)
    span = the_request(record)
    assert phases(record, span) == [("tokenize", 0, 2)]
    assert lengths(span) == {}
    assert names.LLMLAT_PREEMPTION_COUNT not in span.attributes
    assert span.attributes[names.LLMLAT_DECODE_TOKENS] == 2


@each_version
def test_a_core_without_events_is_known_all_the_same(version, clock, record):
    engine = engine_of(version, clock, log_stats=False)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    engine.step({"a": 1}, a=0)
    assert phases(record, the_request(record)) == [
        ("queue", 0, 5),
        ("prefill", 5, 15),
        ("decode", 15, 25),
    ]


def test_where_both_tell_the_same_vllms_own_readings_count(clock, record):
    engine = engine_of(LAST, clock, core_now_ns=lambda: clock.now_ns() + 1 * MS)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    clock.advance(2 * MS)
    engine.step({"a": 1}, a=0)
    assert phases(record, the_request(record))[:2] == [("queue", 1, 6), ("prefill", 6, 16)]


def test_an_event_without_a_stamp_says_nothing(clock, record):
    engine = engine_of(LAST, clock, has_plugin_in_core=False)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    engine.step({}, evicted=["a"])
    evicted = engine.scheduler.requests["a"].events[-1]
    evicted.timestamp = 0.0
    engine.step({"a": 5}, a=0)
    span = the_request(record)
    assert lengths(span) == pytest.approx({"queue": 0.005, "prefill": 0.01, "decode": 0.02})
    assert span.attributes[names.LLMLAT_PREEMPTION_COUNT] == 0


def test_what_is_being_sent_is_never_changed(clock, record):
    engine = engine_of(LAST, clock)
    engine.add("a")
    sent = engine.scheduler.requests["a"].trace_headers
    before = dict(sent)
    engine.step({"a": 4})
    assert sent == before
    assert engine.scheduler.requests["a"].trace_headers != before


# Who asks


def test_en_17_the_caller_survives_as_plain_data_in_the_request(clock, record):
    engine = engine_of(LAST, clock, in_core=elsewhere(clock))
    # A process in between has made the request anew of what it was sent.
    relayed = engine.add("a", headers=dict(CALLER))
    assert {name: relayed.trace_headers[name] for name in CALLER} == CALLER
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert (span.context.trace_id, span.parent.span_id) == (TRACE_ID, SPAN_ID)
    assert span.kind is SpanKind.SERVER


def test_en_17_without_a_caller_it_is_a_root_with_the_name_of_its_request(clock, record):
    engine = engine_of(LAST, clock, in_core=elsewhere(clock))
    engine.add("a")
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert span.parent is None
    assert span.attributes[names.LLMLAT_REQUEST_ID] == "a"


@each_version
def test_the_current_span_is_the_caller_and_is_named_to_the_core(version, clock, record):
    engine = engine_of(version, clock)
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("app") as app:
        request = engine.add("a")
    engine.step({"a": 4}, a=0)
    span, context = the_request(record), app.get_span_context()
    assert span.parent.span_id == context.span_id
    assert span.kind is SpanKind.INTERNAL
    assert request.trace_headers["traceparent"] == (
        f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    )


def test_the_state_of_another_trace_is_not_mixed_in(clock, record):
    engine = engine_of(LAST, clock)
    named = {"traceparent": CALLER["traceparent"]}
    state = trace.TraceState([("ours", "1")])
    around = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1), trace_state=state)
    with trace.use_span(NonRecordingSpan(around)):
        request = engine.add("a", headers=dict(named))
    assert request.trace_headers["traceparent"] == CALLER["traceparent"]
    assert "tracestate" not in request.trace_headers


@each_version
def test_of_a_caller_that_is_not_sampled_nothing_is_noted(version, clock, record):
    engine = engine_of(version, clock)
    around = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(0))
    with trace.use_span(NonRecordingSpan(around)):
        request = engine.add("a")
    assert request.trace_headers is None
    unsampled = {"traceparent": f"00-{1:032x}-{2:016x}-00"}
    assert engine.add("b", headers=dict(unsampled)).trace_headers == unsampled
    assert engine.scheduler.requests["b"].trace_headers == unsampled
    engine.step({"a": 4, "b": 4}, a=0, b=0)
    assert record.spans == ()
    assert engine.scheduler.requests == {}


def test_of_a_root_that_is_not_sampled_nothing_is_written(clock):
    with recorded(clock=clock, sampler=ALWAYS_OFF) as what:
        engine = engine_of(LAST, clock)
        whole(engine, clock)
        assert what.spans == ()


# Beside vLLM's own span


@pytest.fixture
def native(clock, record, monkeypatch):
    """Makes vLLM's own span as vLLM does, in the provider that is set."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", record.tracer_provider)
    tracer = record.tracer_provider.get_tracer("vllm")
    arrival_ns = clock.wall_ns

    def make(output):
        made = tracer.start_span("llm_request", kind=SpanKind.SERVER, start_time=arrival_ns)
        made.set_attribute("vllm.request", output.request_id)
        made.end(clock.wall_ns)

    return make


def native_span(record):
    (span,) = [each for each in record.spans if each.name == "llm_request"]
    return span


@each_version
def test_vllms_own_span_gets_the_phases_and_is_the_only_one(version, clock, record, native):
    engine = engine_of(version, clock, trace=native)
    whole(engine, clock)
    span = native_span(record)
    assert the_request(record) is span
    found = {name: (end - start) / 1000 for name, start, end in phases(record, span)}
    assert found == LENGTHS
    assert span.attributes["vllm.request"] == "a"
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert span.attributes[names.LLMLAT_CLOCK_DOMAIN_ID] == clock.domain_id


@pytest.mark.parametrize(
    ("reason", "end"), [(FinishReason.abort, "cancelled"), (FinishReason.error, "failed")]
)
def test_vllms_own_span_says_how_it_ended(reason, end, clock, record, native):
    engine = engine_of(LAST, clock, trace=native)
    engine.add("a")
    engine.step({"a": 4})
    engine.step({"a": 1}, a=reason)
    assert native_span(record).attributes[names.LLMLAT_STREAM_END] == end
    assert cut(record) == {"decode"}
    assert len(requests(record)) == 1


def test_vllm_makes_no_span_of_what_is_given_up_and_we_do(clock, record, native):
    engine = engine_of(LAST, clock, trace=native)
    engine.add("a")
    engine.step({"a": 4})
    engine.abort("a")
    assert the_request(record).name == "engine text_completion"


def test_a_span_of_vllms_that_does_not_come_is_replaced_by_ours(clock, record, native):
    engine = engine_of(LAST, clock, trace=lambda output: None)
    whole(engine, clock)
    assert the_request(record).name == "engine text_completion"
    assert native_spans._awaited.get() is None
    tracer = record.tracer_provider.get_tracer("app")
    tracer.start_span("llm_request").end()
    assert dict(native_span(record).attributes) == {}


def test_a_span_of_vllms_for_a_request_that_was_not_timed(clock, record, native):
    engine = engine_of(LAST, clock, trace=native)
    request = request_of(engine.shape, "a")
    around = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(0))
    with trace.use_span(NonRecordingSpan(around)):
        engine.outputs.add_request(request, None)
        engine.api.core(request)
    engine.step({"a": 4}, a=0)
    assert [each.name for each in record.spans] == ["llm_request"]
    assert names.LLMLAT_STREAM_END not in native_span(record).attributes


@pytest.mark.parametrize("phases_mode", ["attributes", "off"])
def test_phases_are_written_as_the_settings_say(phases_mode, clock):
    settings = Settings.from_environment({"LLMLAT_PHASES": phases_mode})
    with recorded(clock=clock, settings=settings) as what:
        engine = engine_of(LAST, clock)
        whole(engine, clock)
        other = OtherClock(clock, 0)
        engine = engine_of(LAST, clock, in_core=elsewhere(other))
        whole(engine, clock)
        for span in what.spans:
            said = LENGTHS if phases_mode == "attributes" else {}
            assert lengths(span) == pytest.approx(said)
        assert len(what.spans) == 2
