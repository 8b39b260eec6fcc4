"""Spans of the same call that other instrumentations have opened: taken once, and never doubled."""

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import MS, FakeStream, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv import metrics
from llmlat_semconv.values import ContentKind

GENAI = {names.GEN_AI_OPERATION_NAME: "chat"}
TEXT = ContentKind.TEXT


def their_span(record, attributes):
    tracer = record.tracer_provider.get_tracer("theirs")
    return tracer.start_span("theirs", attributes=attributes, start_time=record.clock.wall_ns)


def call_within(library, span, ends_first, **kwargs):
    """A call whose span somebody else opens between its entry and the transport."""

    def create():
        with use_span(span, end_on_exit=ends_first):
            library.send()
        if kwargs.get("stream"):
            return FakeStream(library.clock, [(10 * MS, None), (20 * MS, TEXT), (5 * MS, TEXT)])
        return "response"

    result = library.create(create, model="m", **kwargs)
    if kwargs.get("stream"):
        result = list(result)
    if not ends_first:
        span.end()
    return result


def named(record):
    ids = {span["id"]: span["name"] for span in record.tree()}
    return [(span["name"], ids.get(span["parent"])) for span in record.tree()]


@pytest.mark.parametrize(
    "said",
    [
        GENAI,
        {names.GEN_AI_OPERATION_NAME: "text_completion"},
        {names.GEN_AI_OPERATION_NAME: "generate_content"},
        {names.OPENINFERENCE_SPAN_KIND: "LLM"},
        {names.LLM_REQUEST_TYPE: "chat"},
        {names.LANGFUSE_OBSERVATION_TYPE: "generation"},
    ],
    ids=str,
)
def test_a_span_of_the_same_call_is_taken_and_not_doubled(library, record, said):
    call_within(library, their_span(record, said), ends_first=False)
    assert named(record) == [
        ("theirs", None),
        ("phase prepare", "theirs"),
        ("phase connect", "theirs"),
        ("phase send", "theirs"),
        ("phase wait", "theirs"),
    ]
    assert record.tree()[0]["attributes"][names.LLMLAT_CONTRACT_VERSION] == "0.1.0"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {names.GEN_AI_OPERATION_NAME: "invoke_agent"},
        {names.GEN_AI_OPERATION_NAME: "execute_tool"},
        {names.GEN_AI_OPERATION_NAME: "embeddings"},
        {names.OPENINFERENCE_SPAN_KIND: "AGENT"},
        {names.OPENINFERENCE_SPAN_KIND: "EMBEDDING"},
        {names.TRACELOOP_SPAN_KIND: "workflow"},
        {names.TRACELOOP_SPAN_KIND: "task"},
        {names.LANGFUSE_OBSERVATION_TYPE: "span"},
        {names.LLM_REQUEST_TYPE: "embedding"},
    ],
    ids=str,
)
def test_a_span_of_something_else_is_left_alone(library, record, said):
    span = their_span(record, said)
    with use_span(span, end_on_exit=True):
        library.create(library.send, model="m")
    assert named(record)[:2] == [("theirs", None), ("chat m", "theirs")]
    assert record.tree()[0]["attributes"] == said


def test_a_span_is_taken_once(library, record):
    """A framework's span around two calls, or a wrapper's around a call that it makes again."""
    span = their_span(record, GENAI)
    with use_span(span, end_on_exit=True):
        library.create(library.send, model="m")
        library.create(library.send, model="m")
    operations = [each for each in named(record) if not each[0].startswith("phase")]
    assert operations == [("theirs", None), ("chat m", "theirs")]
    parents = [parent for name, parent in named(record) if name == "phase wait"]
    assert parents == ["theirs", "chat m"]


def test_a_span_that_has_ended_is_not_taken(library, record):
    """IDs of ended spans stay current where others forget to detach them."""
    span = their_span(record, GENAI)
    span.end()
    with use_span(span):
        library.create(library.send, model="m")
    assert ("chat m", "theirs") in named(record)


def test_their_span_says_all_while_it_is_open(library, record):
    call_within(library, their_span(record, GENAI), ends_first=False, stream=True)
    theirs = record.tree()[0]["attributes"]
    assert theirs[names.LLMLAT_STREAM_END] == "complete"
    assert theirs[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] == 0.04
    assert [name for name, _ in named(record) if name.startswith("attempt")] == []


#  0      1       3    6         20              40    45
#  |prepare|connect|send|  wait   | first_content |stream|
#  theirs ──────────────┘ attempt ───────────────────────┘
def test_what_their_span_can_no_longer_say_is_said_by_the_attempt(library, record):
    call_within(library, their_span(record, GENAI), ends_first=True, stream=True)
    assert named(record) == [
        ("theirs", None),
        ("phase prepare", "theirs"),
        ("attempt m", "theirs"),
        ("phase connect", "attempt m"),
        ("phase send", "attempt m"),
        ("phase wait", "attempt m"),
        ("phase first_content", "attempt m"),
        ("phase stream", "attempt m"),
    ]
    said = record.tree()[2]["attributes"]
    assert said[names.LLMLAT_ATTEMPT_NUMBER] == 1
    assert said[names.LLMLAT_ATTEMPT_OUTCOME] == "won"
    assert said[names.LLMLAT_STREAM_END] == "complete"
    assert said[names.LLMLAT_STREAM_CHUNK_COUNT] == 3
    assert said[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT] == 0.039, "from the attempt's start"


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.ATTRIBUTES)], indirect=True)
def test_nothing_is_lost_where_phases_are_attributes(library, record):
    call_within(library, their_span(record, GENAI), ends_first=True, stream=True)
    assert named(record) == [
        ("theirs", None),
        ("phase prepare", "theirs"),
        ("attempt m", "theirs"),
    ], "there is no other place for what came before the attempt"
    said = record.tree()[2]["attributes"]
    assert said[names.LLMLAT_CONNECT_DURATION] == 0.002
    assert said[names.LLMLAT_WAIT_DURATION] == 0.014
    assert said[names.LLMLAT_STREAM_DURATION] == 0.005


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.OFF)], indirect=True)
def test_without_phases_an_attempt_is_made_only_if_it_has_something_to_say(library, record):
    call_within(library, their_span(record, GENAI), ends_first=True)
    assert named(record) == [("theirs", None)]
    call_within(library, their_span(record, GENAI), ends_first=True, stream=True)
    assert [name for name, _ in named(record)] == ["theirs", "theirs", "attempt m"]


def test_retries_under_their_span_are_attempts_under_it(library, record):
    span = their_span(record, GENAI)

    def create():
        with use_span(span, end_on_exit=True):
            library.send(status=503)
            library.wait(100)
            library.send()
        return "response"

    library.create(create, model="m")
    assert [each for each in named(record) if each[0] in {"attempt m", "phase backoff"}] == [
        ("attempt m", "theirs"),
        ("phase backoff", "theirs"),
        ("attempt m", "theirs"),
    ]
    upstream = [headers["traceparent"].split("-")[2] for headers in library.headers]
    theirs = span.get_span_context().span_id
    second = [each["id"] for each in record.tree() if each["name"] == "attempt m"][1]
    assert upstream == [f"{theirs:016x}", f"{second:016x}"]


@pytest.mark.parametrize(
    ("said", "counted"),
    [(GENAI, False), ({names.OPENINFERENCE_SPAN_KIND: "LLM"}, True)],
    ids=["they follow OpenTelemetry's conventions, metrics included", "they have no metrics"],
)
def test_a_call_is_counted_once(library, record, said, counted):
    call_within(library, their_span(record, said), ends_first=True)
    assert metrics.LLMLAT_PHASE_DURATION.name in record.points()
    assert (metrics.GEN_AI_CLIENT_INFERENCE_DURATION.name in record.points()) is counted


def test_a_span_that_is_not_sampled_is_named_upstream_with_its_flags(library, clock):
    with recorded(clock=clock, sampler=ALWAYS_OFF) as record:
        call_within(library, their_span(record, GENAI), ends_first=True)
    assert library.headers[0]["traceparent"].endswith("-00")


def test_a_callers_trace_that_is_not_sampled_stays_so(library, record):
    remote = NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(0)))
    with use_span(remote):
        library.create(library.send, model="m")
    version, trace_id, _, flags = library.headers[0]["traceparent"].split("-")
    assert (version, int(trace_id, 16)) == ("00", 7)
    assert int(flags, 16) & 1 == record.spans[0].get_span_context().trace_flags & 1
