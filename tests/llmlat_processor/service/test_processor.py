"""One processor from its doors to its destinations, over real connections on loopback."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import urllib3
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.edges.exporter import Exporter
from llmlat_processor.service import Processor, handing_on
from llmlat_processor.service.handing_on import HandingOn
from llmlat_processor.service.releasing import (
    EXPLAINED_BEFORE,
    NO_ROOT,
    NOTHING_TO_EXPLAIN,
)
from llmlat_processor.settings import Deployment, Destination, Explained, Mode, Views
from llmlat_processor.views.lane import SERVICE
from llmlat_processor.window import SECOND_NS, Limits
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes
from tests.llmlat_processor.forwarding import lane_of, originals, span
from tests.llmlat_processor.otlp import CHAT, PYTHON_SERVICE, request
from tests.llmlat_processor.service.deployments import (
    AT_ONCE,
    HURRIED,
    LISTENER,
    PATIENT,
    QUICK,
    WAIT_S,
    inline,
    names,
    nobody,
    post,
    running,
    until,
)
from tests.llmlat_processor.sink import Sink, sink

SOON = replace(AT_ONCE, window=Limits(idle_ns=SECOND_NS // 20, grace_ns=0))


def chat(number: int, *, trace: int = 1) -> Message:
    """A span that speaks of GenAI."""
    return span(number, trace=trace, attributes=CHAT)


# ── Ways in and out ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("language", ["protobuf", "json"])
def test_spans_come_in_over_http_as_well(language: str) -> None:
    content = {
        "protobuf": request([span(1), span(2)], scope="app").SerializeToString(),
        "json": (
            b'{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"app"},"spans":['
            b'{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001",'
            b'"name":"1/1","startTimeUnixNano":"1","endTimeUnixNano":"5"}]}]}]}'
        ),
    }[language]
    kind = {"protobuf": "application/x-protobuf", "json": "application/json"}[language]
    with sink() as destination:
        with running(replace(inline(destination.address), http=LISTENER, grpc=None)) as one:
            url = f"http://{one.address}/v1/traces"
            answer = urllib3.request("POST", url, body=content, headers={"content-type": kind})
        assert (answer.status, names(destination)[0]) == (200, "1/1")


def test_what_is_derived_can_go_elsewhere() -> None:
    with sink() as spans, sink() as derived:
        elsewhere = Destination(derived.address, delivery=QUICK)
        with running(replace(inline(spans.address), derived=elsewhere)) as one:
            post(one, span(1), span(2))
            derived.wait_for_spans(1)
        status = one.status()

    assert (names(spans), names(derived)) == (["1/1", "1/2"], [])
    assert (lane_of(spans), len(lane_of(derived))) == ([], one.books().added)
    assert [*status.destinations] == [f"spans {spans.address}", f"derived {derived.address}"]


def test_a_tap_sends_only_what_it_makes() -> None:
    with sink() as derived:
        to = Destination(derived.address, delivery=QUICK)
        with running(Deployment(Mode.TAP, LISTENER, derived=to, settings=AT_ONCE)) as one:
            post(one, span(1), span(2))
            derived.wait_for_spans(1)

    books = one.books()
    assert (originals(derived), books.consumed, books.sent) == ([], 2, books.added)


# ── What is explained ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("explained", "why"),
    [(Explained.ALL, {}), (Explained.GENAI, {NOTHING_TO_EXPLAIN: 1})],
)
def test_traces_in_which_nothing_speaks_of_genai_can_be_left_alone(
    explained: Explained, why: dict[str, int]
) -> None:
    settings = replace(PATIENT, views=Views(explained=explained))
    with sink() as destination, running(inline(destination.address, settings=settings)) as one:
        post(one, span(1))
        post(one, chat(1, trace=2), span(2, trace=2))

    assert names(destination) == ["1/1", "2/1", "2/2"]
    assert one.books().as_they_came == why


def test_a_trace_without_a_root_goes_as_it_came() -> None:
    with sink() as destination, running(inline(destination.address, settings=PATIENT)) as one:
        post(one, span(2), span(3))

    assert (names(destination), lane_of(destination)) == (["1/2", "1/3"], [])
    assert one.books().as_they_came == {NO_ROOT: 2}


def test_what_another_processor_has_explained_goes_as_it_came() -> None:
    with sink() as destination, running(inline(destination.address, settings=PATIENT)) as one:
        post(one, span(1))
        post(one, span(2), scope=OWN_SCOPE)

    assert len(destination.spans) == 2
    assert one.books().as_they_came == {EXPLAINED_BEFORE: 2}


def test_a_large_trace_is_explained_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_on, "LARGE", 2)
    with sink() as destination, running(inline(destination.address, settings=PATIENT)) as one:
        post(one, span(1), span(2), span(3))
        post(one, span(1, trace=2))

    assert names(destination) == ["1/1", "1/2", "1/3", "2/1"]
    assert (one.books().traces, one.status().waiting_bytes) == (2, 0)


# ── Late spans ───────────────────────────────────────────────────────────────────────────────────


def late_one(number: int) -> bytes:
    """A child in another service: the path goes through it."""
    resource = {**PYTHON_SERVICE, attributes.SERVICE_NAME: "planner"}
    return request([chat(number)], resource, "app").SerializeToString()


def post_over_http(address: str, content: bytes) -> None:
    url = f"http://{address}/v1/traces"
    kind = {"content-type": "application/x-protobuf"}
    assert urllib3.request("POST", url, body=content, headers=kind).status == 200


def lanes(destination: Sink) -> int:
    return sum(not span.parent_span_id for span in lane_of(destination))


def test_late_spans_that_change_the_path_get_another_lane() -> None:
    with sink() as destination:
        deployment = replace(inline(destination.address, settings=SOON), http=LISTENER)
        with running(deployment) as one:
            post(one, chat(1))
            until(lambda: one.books().traces == 1)
            post_over_http(one.addresses[1], late_one(2))
            until(lambda: one.books().revisions == 1)

    books = one.books()
    assert names(destination) == ["1/1", "1/2"]
    assert (books.late, books.traces, books.added) == (1, 1, len(lane_of(destination)))
    services = {
        pair.value.string_value
        for resource, scope, _ in destination.spans
        if scope.scope.name == OWN_SCOPE
        for pair in resource.resource.attributes
        if pair.key == attributes.SERVICE_NAME
    }
    assert services == {SERVICE}


def test_late_spans_that_change_nothing_get_none() -> None:
    with sink() as destination, running(inline(destination.address, settings=SOON)) as one:
        post(one, chat(1))
        until(lambda: one.books().traces == 1)
        post(one, chat(2))

    assert names(destination) == ["1/1", "1/2"]
    assert (one.books().late, one.books().revisions) == (1, 0)


# ── Faults of ours, and the end ──────────────────────────────────────────────────────────────────


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError


def test_a_fault_of_the_worker_ends_the_work_and_is_raised_by_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HandingOn, "_put", fail)
    with sink() as destination:
        one = Processor(inline(destination.address))
        post(one, span(1))
        assert one.has_ended(WAIT_S)
        with pytest.raises(ZeroDivisionError):
            one.stop()

    assert (one.books().balances, one.books().held) == (True, 1)


def test_a_fault_of_an_exporter_ends_the_work_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exporter, "_deliver", fail)
    one = Processor(inline(nobody()))
    post(one, span(1))
    assert one.has_ended(WAIT_S)
    with pytest.raises(ZeroDivisionError):
        one.stop()

    books = one.books()
    assert (books.balances, books.dropped) == (True, {"shutdown": 1 + books.added})


def test_an_address_that_is_taken_leaves_nothing_behind() -> None:
    with sink() as destination, running(inline(destination.address)) as first:
        taken = replace(LISTENER, address=first.address)
        with pytest.raises(OSError, match=first.address.rpartition(":")[2]):
            running(replace(inline(destination.address), telemetry=taken)).__enter__()


def test_without_a_folder_for_its_state_it_works_and_says_what_is_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with sink() as destination:
        nowhere = replace(inline(destination.address), state=tmp_path / "file" / "state")
        with running(nowhere) as one:
            post(one, span(1))

    assert (one.books().traces, names(destination)) == (1, ["1/1"])
    assert "what is learned of clocks is not kept" in caplog.text


def test_the_books_balance_at_every_moment() -> None:
    with (
        sink() as destination,
        ThreadPoolExecutor(1) as threads,
        running(inline(destination.address)) as one,
    ):
        sending = threads.submit(
            lambda: [post(one, span(1, trace=n), span(2, trace=n)) for n in range(1, 60)]
        )
        while not sending.done():
            assert one.books().balances
        sending.result()


def test_an_empty_request_is_a_success() -> None:
    with sink() as destination, running(inline(destination.address)) as one:
        answer = ExportTraceServiceResponse.FromString(post(one))

    assert not answer.HasField("partial_success")
    assert one.books().received == 0


def test_what_is_left_at_the_end_without_a_journal_is_dropped_and_said() -> None:
    with running(inline(nobody(), delivery=HURRIED)) as one:
        post(one, span(1))

    assert one.books().dropped == {"shutdown": 1 + one.books().added}
