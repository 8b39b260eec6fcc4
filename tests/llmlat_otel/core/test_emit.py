"""Recordings as telemetry: whole payloads, once in each mode."""

from typing import Any

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import MS, FakeStream, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv import metrics
from llmlat_semconv.values import ContentKind

SECOND_NS = 1_000_000_000
ANCHOR = {
    names.LLMLAT_CLOCK_ANCHOR_MONOTONIC: SECOND_NS,
    names.LLMLAT_CLOCK_ANCHOR_WALL: 1_700_000_000 * SECOND_NS,
    names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: 0,
}
REQUEST = {
    names.LLMLAT_CONTRACT_VERSION: "0.1.0",
    names.LLMLAT_BOUNDARY_NAME: "client",
    names.GEN_AI_OPERATION_NAME: "chat",
    names.GEN_AI_PROVIDER_NAME: "fake",
    names.GEN_AI_REQUEST_MODEL: "m",
    **ANCHOR,
}
STREAM = {
    names.LLMLAT_STREAM_END: "complete",
    names.LLMLAT_STREAM_CHUNK_COUNT: 3,
    names.LLMLAT_STREAM_GAP_MAX: 0.02,
    names.LLMLAT_STREAM_GAP_BUCKET_COUNTS: (0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    names.LLMLAT_STREAM_STALL_COUNT: 0,
    names.LLMLAT_STREAM_STALL_DURATION: 0.0,
    names.LLMLAT_STREAM_STALL_THRESHOLD: 1.0,
    names.LLMLAT_CONSUMER_DURATION: 0.0,
    names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: 0.04,
    names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND: "text",
    names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: 0.02,
}


def clock_at(start_ms: int) -> dict[str, object]:
    return {
        names.LLMLAT_CLOCK_DOMAIN_ID: "manual",
        names.LLMLAT_CLOCK_MONOTONIC_START: SECOND_NS + start_ms * MS,
    }


def phase_span(
    span_id: int, name: str, kind: str, start_ms: int, end_ms: int, sequence: int, parent: int = 1
) -> dict[str, object]:
    return {
        "name": f"phase {name}",
        "id": span_id,
        "parent": parent,
        "kind": "INTERNAL",
        "start_ns": start_ms * MS,
        "end_ns": end_ms * MS,
        "attributes": {
            names.LLMLAT_PHASE_NAME: name,
            names.LLMLAT_PHASE_CLASS: kind,
            names.LLMLAT_PHASE_EVIDENCE: "measured",
            names.LLMLAT_PHASE_DURATION: (end_ms - start_ms) / 1000,
            names.LLMLAT_PHASE_SEQUENCE: sequence,
            names.LLMLAT_BOUNDARY_NAME: "client",
            **clock_at(start_ms),
        },
    }


#  0      1       3    6         20              40     60
#  |prepare|connect|send|  wait   | first_content |stream|
def stream_a_call(library):
    def create():
        library.send()
        events = [(10 * MS, None), (20 * MS, ContentKind.TEXT), (20 * MS, ContentKind.TEXT)]
        return FakeStream(library.clock, events)

    return list(library.create(create, model="m", stream=True))


def test_a_streamed_call_as_spans(library, record):
    stream_a_call(library)
    assert record.tree() == [
        {
            "name": "chat m",
            "id": 1,
            "parent": None,
            "kind": "CLIENT",
            "start_ns": 0,
            "end_ns": 60 * MS,
            "attributes": {
                **REQUEST,
                **STREAM,
                **clock_at(0),
                names.GEN_AI_REQUEST_STREAM: True,
            },
        },
        phase_span(2, "prepare", "overhead", 0, 1, 0),
        phase_span(3, "connect", "network", 1, 3, 1),
        phase_span(4, "send", "network", 3, 6, 2),
        phase_span(5, "wait", "remote", 6, 20, 3),
        phase_span(6, "first_content", "remote", 20, 40, 4),
        phase_span(7, "stream", "remote", 40, 60, 5),
    ]


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.ATTRIBUTES)], indirect=True)
def test_a_streamed_call_as_attributes(library, record):
    stream_a_call(library)
    (span,) = record.tree()
    assert span["attributes"] == {
        **REQUEST,
        **STREAM,
        **clock_at(0),
        names.GEN_AI_REQUEST_STREAM: True,
        names.LLMLAT_PREPARE_DURATION: 0.001,
        names.LLMLAT_CONNECT_DURATION: 0.002,
        names.LLMLAT_SEND_DURATION: 0.003,
        names.LLMLAT_WAIT_DURATION: 0.014,
        names.LLMLAT_FIRST_CONTENT_DURATION: 0.02,
        names.LLMLAT_STREAM_DURATION: 0.02,
    }


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.OFF)], indirect=True)
def test_a_streamed_call_without_phases(library, record):
    stream_a_call(library)
    (span,) = record.tree()
    assert span["attributes"] == {
        **REQUEST,
        **STREAM,
        **clock_at(0),
        names.GEN_AI_REQUEST_STREAM: True,
    }


@pytest.mark.parametrize("record", [Settings(phase_min_ns=15 * MS)], indirect=True)
def test_short_phases_are_attributes(library, record):
    stream_a_call(library)
    assert [span["name"] for span in record.tree()] == [
        "chat m",
        "phase first_content",
        "phase stream",
    ]
    assert record.tree()[0]["attributes"][names.LLMLAT_WAIT_DURATION] == 0.014


def test_a_retry_makes_attempt_spans(library, record):
    def create():
        library.send(status=503)
        library.wait(100)
        library.send()
        return "response"

    library.create(create, model="m")
    spans = record.tree()
    assert [(span["name"], span["id"], span["parent"]) for span in spans] == [
        ("chat m", 1, None),
        ("phase prepare", 4, 1),
        ("attempt m", 3, 1),
        ("phase connect", 5, 3),
        ("phase send", 6, 3),
        ("phase wait", 7, 3),
        ("phase backoff", 8, 1),
        ("attempt m", 2, 1),
        ("phase connect", 9, 2),
        ("phase send", 10, 2),
        ("phase wait", 11, 2),
    ]
    first, second = spans[2], spans[7]
    assert (first["start_ns"], first["end_ns"]) == (1 * MS, 10 * MS)
    assert first["error"]
    assert first["attributes"] == {
        names.LLMLAT_BOUNDARY_NAME: "client",
        names.LLMLAT_ATTEMPT_NUMBER: 1,
        names.LLMLAT_ATTEMPT_REASON: "initial",
        names.LLMLAT_ATTEMPT_OUTCOME: "failed",
        names.ERROR_TYPE: "503",
        **clock_at(1),
    }
    assert (second["start_ns"], second["end_ns"]) == (111 * MS, 120 * MS)
    assert second["attributes"][names.LLMLAT_ATTEMPT_OUTCOME] == "won"
    assert spans[0]["attributes"][names.HTTP_REQUEST_RESEND_COUNT] == 1
    assert "error" not in spans[0], "the call itself went well"
    assert [headers["traceparent"] for headers in library.headers] == [
        f"00-{1:032x}-{1:016x}-01",
        f"00-{1:032x}-{2:016x}-01",
    ], "the first attempt has sent the operation's own id"


def test_an_unsampled_call_makes_no_spans_but_counts(library, clock):
    with recorded(clock=clock, sampler=ALWAYS_OFF) as record:
        stream_a_call(library)
        assert record.tree() == []
        assert len(record.points()[names.LLMLAT_PHASE_DURATION]) == 6
    assert library.headers[0]["traceparent"].endswith("-00"), "the peer is told so too"


def test_metrics_are_recorded_once_at_the_end(library, record):
    stream_a_call(library)
    points = record.points()
    call = {
        names.GEN_AI_PROVIDER_NAME: "fake",
        names.GEN_AI_REQUEST_MODEL: "m",
        names.GEN_AI_OPERATION_NAME: "chat",
    }
    assert points[metrics.GEN_AI_CLIENT_INFERENCE_DURATION.name] == [(call, 0.06)]
    assert points[metrics.GEN_AI_CLIENT_INFERENCE_TIME_TO_FIRST_CHUNK.name] == [(call, 0.02)]
    assert points[metrics.GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK.name] == [(call, 0.02)]
    phases = {
        by[names.LLMLAT_PHASE_NAME]: seconds
        for by, seconds in points[metrics.LLMLAT_PHASE_DURATION.name]
    }
    assert phases == {
        "prepare": 0.001,
        "connect": 0.002,
        "send": 0.003,
        "wait": 0.014,
        "first_content": 0.02,
        "stream": 0.02,
    }


def test_metrics_wait_for_a_meter_provider(library, record, clock, monkeypatch):
    reader: Any = InMemoryMetricReader()
    providers = [NoOpMeterProvider(), MeterProvider([reader], shutdown_on_exit=False)]
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", lambda: providers[0])
    settings = Settings()
    emitter = Emitter(settings, clock.domain_id, tracer_provider=record.tracer_provider)
    with running(Runtime(settings, clock, emitter)):
        library.create(lambda: "response", model="before")
        providers.pop(0)
        library.create(lambda: "response", model="after")
    data = reader.get_metrics_data()
    models = {
        point.attributes[names.GEN_AI_REQUEST_MODEL]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert models == {"after"}


def test_a_wall_step_within_a_call_does_not_bend_it(library, record):
    def create():
        library.send()
        library.clock.step_wall(-3_600 * SECOND_NS)
        return "response"

    library.create(create, model="m")
    assert record.tree()[0]["end_ns"] == 10 * MS


def test_error_types_name_the_class_and_keep_the_message_to_themselves(library, record):
    def create():
        raise ValueError("the user's secret")

    with pytest.raises(ValueError, match="secret"):
        library.create(create, model="m")
    span = record.tree()[0]
    assert span["error"]
    assert span["attributes"][names.ERROR_TYPE] == "ValueError"
    assert "secret" not in repr([each.to_json() for each in record.spans])
