"""The span of an engine request: our own, or what is written into the engine's."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, TraceState

from llmlat_otel.core import engine_spans
from llmlat_otel.core.engine_spans import Caller, EngineAccount, caller
from llmlat_otel.core.recording import PhaseInterval
from llmlat_otel.core.runtime import runtime
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import OperationName, StreamEnd

TRACE_ID, SPAN_ID = 0xABC, 0xDEF
TRACEPARENT = f"00-{TRACE_ID:032x}-{SPAN_ID:016x}-01"
START_NS = 1_000_000_000


def within(*, sampled=True, remote=True, state=None):
    """A context with a caller's span."""
    flags = TraceFlags(int(sampled))
    span = SpanContext(TRACE_ID, SPAN_ID, remote, flags, TraceState(state or []))
    return trace.set_span_in_context(NonRecordingSpan(span))


def interval(phase, start_ms, end_ms, *, cut=False):
    return PhaseInterval(phase, START_NS + start_ms * MS, START_NS + end_ms * MS, 0, cut)


def account(**more):
    known = {
        "operation": OperationName.CHAT,
        "model": "m",
        "start_ns": START_NS,
        "end_ns": START_NS + 100 * MS,
        "phases": (interval(Phase.QUEUE, 0, 10), interval(Phase.PREFILL, 10, 40)),
        "facts": {names.LLMLAT_REQUEST_ID: "r-1"},
        "end": StreamEnd.COMPLETE,
        "provider": "vllm",
    }
    return EngineAccount(**{**known, **more})


def write(request, asked_by=None):
    sdk = runtime()
    asked_by = asked_by or Caller(Context(), SpanKind.INTERNAL)
    return engine_spans.write_engine(sdk.emitter, request, asked_by, sdk.clock.anchor())


ALL_SPANS = pytest.mark.parametrize("record", [Settings(phase_min_ns=0)], indirect=True)


@ALL_SPANS
def test_a_span_of_our_own_with_its_phases(record):
    write(account(), Caller(within(), SpanKind.SERVER))
    span, *phases = record.spans
    assert span.name == "engine chat"
    assert (span.context.trace_id, span.parent.span_id) == (TRACE_ID, SPAN_ID)
    assert span.kind is SpanKind.SERVER
    assert (span.end_time - span.start_time) == 100 * MS
    assert [each.name for each in phases] == ["phase queue", "phase prefill"]
    assert {each.parent.span_id for each in phases} == {span.context.span_id}
    said = dict(span.attributes)
    assert said[names.LLMLAT_BOUNDARY_NAME] == "engine"
    assert said[names.GEN_AI_OPERATION_NAME] == "chat"
    assert said[names.GEN_AI_PROVIDER_NAME] == "vllm"
    assert said[names.GEN_AI_REQUEST_MODEL] == "m"
    assert said[names.LLMLAT_REQUEST_ID] == "r-1"
    assert said[names.LLMLAT_STREAM_END] == "complete"
    assert said[names.LLMLAT_CLOCK_MONOTONIC_START] == START_NS


@ALL_SPANS
def test_what_is_cut_short_says_so(record):
    write(account(phases=(interval(Phase.QUEUE, 0, 10, cut=True),), end=StreamEnd.CANCELLED))
    span, queue = record.spans
    assert queue.attributes[names.LLMLAT_PHASE_TRUNCATED] is True
    assert span.attributes[names.LLMLAT_STREAM_END] == "cancelled"
    assert span.status.is_unset


def test_a_failure_is_an_error(record):
    write(account(end=StreamEnd.FAILED, error_type="EngineDeadError"))
    (span,) = [each for each in record.spans if each.name == "engine chat"]
    assert span.attributes[names.ERROR_TYPE] == "EngineDeadError"
    assert not span.status.is_ok
    assert not span.status.is_unset


def test_phases_of_another_clock_are_amounts_and_no_spans(record):
    far = [PhaseInterval(Phase.PREFILL, at, at + 3 * MS, 0, False) for at in (7, 90 * MS)]
    write(account(phases=(), elsewhere=tuple(far)))
    (span,) = record.spans
    assert span.attributes[duration_attribute(Phase.PREFILL)] == 0.006


def test_a_span_that_cannot_be_written_ends_all_the_same(record, monkeypatch):
    def fail(*_):
        raise KeyError("ours")

    monkeypatch.setattr(runtime().emitter, "_write", fail)
    monkeypatch.setattr(runtime().emitter, "end", fail)
    with pytest.raises(KeyError):
        write(account())
    assert [each.name for each in record.spans] == ["engine chat"]


def test_an_unknown_model_is_not_named(record):
    write(account(model=None, provider=None))
    span = record.spans[0]
    assert names.GEN_AI_REQUEST_MODEL not in span.attributes
    assert names.GEN_AI_PROVIDER_NAME not in span.attributes


@ALL_SPANS
def test_into_a_span_of_the_engines_own(record):
    tracer, sdk = record.tracer_provider.get_tracer("vllm"), runtime()
    theirs = tracer.start_span("llm_request", start_time=5)
    engine_spans.write_into(sdk.emitter, account(), theirs, sdk.clock.anchor())
    assert theirs.is_recording(), "they end it"
    theirs.end(5 + 100 * MS)
    span, *phases = record.spans
    assert span.name == "llm_request"
    assert {each.parent.span_id for each in phases} == {span.context.span_id}
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert span.attributes[names.LLMLAT_REQUEST_ID] == "r-1"
    assert span.attributes[names.LLMLAT_BOUNDARY_NAME] == "engine"


@ALL_SPANS
@pytest.mark.parametrize(
    ("begin_ms", "lengths_ms"),
    [(4, [6, 30]), (10, [30]), (3_600_000, [10, 30])],
    ids=["within-the-first", "after-the-first", "by-a-wall-clock-that-was-set"],
)
def test_into_a_span_of_the_engines_own_that_begins_later(record, begin_ms, lengths_ms):
    tracer, sdk = record.tracer_provider.get_tracer("vllm"), runtime()
    anchor = sdk.clock.anchor()
    start_ns = anchor.wall_at(START_NS + begin_ms * MS)
    theirs = tracer.start_span("llm_request", start_time=start_ns)
    engine_spans.write_into(sdk.emitter, account(), theirs, anchor)
    theirs.end()
    phases = [each for each in record.spans if each.name != "llm_request"]
    assert [(each.end_time - each.start_time) // MS for each in phases] == lengths_ms
    assert begin_ms > 10 or all(each.start_time >= start_ns for each in phases)


def test_into_a_span_that_is_not_recorded(record):
    sdk = runtime()
    theirs = trace.get_current_span(within(sampled=False))
    engine_spans.write_into(sdk.emitter, account(), theirs, sdk.clock.anchor())
    assert record.spans == ()


# Who asks


def test_whoever_is_current_asks(record):
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("app"):
        asked_by = caller(None)
        assert asked_by == Caller(get_current(), SpanKind.INTERNAL)
        assert asked_by.is_heard
    assert caller(None).is_heard
    assert caller(None).headers == {}


def test_the_headers_of_a_request_name_who_asks(record):
    asked_by = caller({"traceparent": TRACEPARENT})
    named = trace.get_current_span(asked_by.context).get_span_context()
    assert (named.trace_id, named.span_id, asked_by.kind) == (TRACE_ID, SPAN_ID, SpanKind.SERVER)
    assert asked_by.headers == {"traceparent": TRACEPARENT}
    assert caller({}).headers == {}


def test_a_span_of_the_same_request_is_the_caller(record):
    tracer = record.tracer_provider.get_tracer("web")
    with tracer.start_as_current_span("POST /v1/chat", kind=SpanKind.SERVER) as span:
        asked_by = caller({"traceparent": TRACEPARENT})
    assert asked_by.kind is SpanKind.INTERNAL
    assert trace.get_current_span(asked_by.context) is span


def test_a_caller_that_is_not_sampled_is_not_heard():
    assert not Caller(within(sampled=False), SpanKind.SERVER).is_heard
    assert Caller(within(), SpanKind.SERVER).is_heard
    assert Caller(Context(), SpanKind.SERVER).is_heard


def test_the_state_of_a_trace_goes_along():
    asked_by = Caller(within(state=[("a", "b")]), SpanKind.SERVER)
    assert asked_by.headers == {"traceparent": TRACEPARENT, "tracestate": "a=b"}
