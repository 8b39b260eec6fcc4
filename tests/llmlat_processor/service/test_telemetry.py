"""What a processor tells of itself: its pages over HTTP, and its reports over OTLP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
import urllib3
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from llmlat_processor.edges.exporter import Exporter
from llmlat_processor.edges.sending import Signal
from llmlat_processor.metrics.own import Usage
from llmlat_processor.model.families import Family
from llmlat_processor.model.status import Books, Status
from llmlat_processor.service import Processor
from llmlat_processor.service.telemetry import Reports, pages
from llmlat_processor.settings import Destination, Metering
from llmlat_semconv.metrics import LLMLAT_CRITICAL_PATH_DURATION
from tests.llmlat_processor.forwarding import span
from tests.llmlat_processor.service.deployments import (
    HURRIED,
    LISTENER,
    QUICK,
    WAIT_S,
    inline,
    nobody,
    post,
    running,
    until,
)
from tests.llmlat_processor.sink import Sink, saying, sink

METRICS_SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"
OPEN_METRICS = "application/openmetrics-text"


def asked(one: Processor, path: str, accept: str = "*/*") -> urllib3.BaseHTTPResponse:
    url = f"http://{one.telemetry_address}{path}"
    return urllib3.request("GET", url, headers={"accept": accept})


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processor]:
    """One that has explained a trace of two spans."""
    state: Path = tmp_path_factory.mktemp("state")
    with sink() as destination:
        deployment = replace(inline(destination.address, state), telemetry=LISTENER)
        with running(deployment) as one:
            post(one, span(1), span(2))
            until(lambda: one.books().traces == 1 and not one.books().queued)
            yield one


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_it_lives_and_is_ready(at_work: Processor, path: str) -> None:
    answer = asked(at_work, path)

    assert (answer.status, answer.data) == (200, b"ok")


@pytest.mark.parametrize("accept", ["*/*", OPEN_METRICS])
def test_metrics_of_traces_and_of_itself_in_both_languages(at_work: Processor, accept: str) -> None:
    answer = asked(at_work, "/metrics", accept)
    lines = answer.data.decode().splitlines()

    assert (answer.headers["content-type"].startswith(OPEN_METRICS)) is (accept == OPEN_METRICS)
    assert "llmlat_receiver_accepted_spans_total 2.0" in lines
    assert "llmlat_processor_books_balanced 1.0" in lines
    assert any(line.startswith("llmlat_critical_path_duration_seconds_count") for line in lines)


def test_the_status_is_what_it_tells_of_itself(at_work: Processor) -> None:
    told = Status.of(json.loads(asked(at_work, "/status").data))

    assert replace(told, uptime_s=0.0) == replace(at_work.status(), uptime_s=0.0)
    assert (told.books.received, told.mode, told.not_ready) == (2, "inline", "")
    assert told.journal is not None


def test_there_is_nothing_else(at_work: Processor) -> None:
    assert asked(at_work, "/secrets").status == 404


def test_it_is_not_ready_while_nothing_has_room_and_still_lives() -> None:
    full = inline(nobody(), delivery=replace(HURRIED, queue_bytes=1))
    with running(replace(full, telemetry=LISTENER)) as one:
        post(one, span(1))
        until(lambda: asked(one, "/readyz").status == 503)

        assert b"too many spans" in asked(one, "/readyz").data
        assert asked(one, "/healthz").status == 200


# ── Reports ──────────────────────────────────────────────────────────────────────────────────────


def metrics_sink(requests: int) -> Sink:
    return Sink(answers=[saying(b"")] * requests, service=METRICS_SERVICE)


def told_of(content: bytes) -> set[str]:
    return {
        metric.name
        for resource in ExportMetricsServiceRequest.FromString(content).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_metrics_are_sent_as_well_and_a_last_time_at_the_end() -> None:
    told = metrics_sink(100)
    with sink() as destination:
        metering = Metering(Destination(told.address, delivery=QUICK), interval_s=3_600)
        with running(replace(inline(destination.address), metering=metering)) as one:
            post(one, span(1))
            until(lambda: one.books().traces == 1)
    told.stop()

    names = told_of(told.requests[0])
    assert len(told.requests) == 1
    assert {LLMLAT_CRITICAL_PATH_DURATION.name, "llmlat_exporter_sent_spans"} <= names


def test_metrics_are_sent_now_and_then() -> None:
    told = metrics_sink(10_000)
    metering = Metering(Destination(told.address, delivery=QUICK), interval_s=0.01)
    with running(replace(inline(nobody(), delivery=HURRIED), metering=metering)):
        told.wait_for_requests(3)
    told.stop()

    assert told_of(told.requests[1]) == told_of(told.requests[0])


class Idle:
    """Somebody who has nothing to tell but that he is there."""

    started_ns = 1
    usage = Usage(0.5, 1)

    def __init__(self, not_ready: str = "") -> None:
        self._not_ready = not_ready
        self.asked = 0

    def status(self) -> Status:
        self.asked += 1
        return Status(Books())

    def why_not_ready(self) -> str:
        return self._not_ready

    def families(self) -> Sequence[Family]:
        return ()


def test_no_report_is_made_while_an_earlier_one_waits() -> None:
    told = Idle()
    exporter = Exporter(Destination(nobody(), delivery=HURRIED), signal=Signal.METRICS)
    reports = Reports(exporter, told, 1 << 20)

    reports.send()
    queued = exporter.counts.queued
    reports.send()

    assert (told.asked, exporter.counts.queued > 0, exporter.counts.queued) == (1, True, queued)
    exporter.stop()


def test_whether_it_is_ready_is_told_without_waiting_for_its_status() -> None:
    told = Idle("a worker is being started")
    status, _, content = pages(told)["/readyz"]("")

    assert (status, content, told.asked) == (503, b"a worker is being started", 0)


def test_a_destination_of_metrics_that_hangs_ends_nothing_else() -> None:
    go_on = Event()

    def hang(_context: object) -> bytes:
        go_on.wait(WAIT_S)
        return b""

    told = Sink(answers=[hang], service=METRICS_SERVICE)
    metering = Metering(Destination(told.address, delivery=HURRIED), interval_s=0.01)
    with (
        sink() as destination,
        running(replace(inline(destination.address), metering=metering)) as one,
    ):
        told.wait_for_requests(1)
        post(one, span(1))
        until(lambda: one.books().sent > 0)
        assert len(told.requests) == 1
    go_on.set()
    told.stop()
