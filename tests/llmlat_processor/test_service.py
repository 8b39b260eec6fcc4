"""From the exporter's request to the finished trace, over real gRPC on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.model import INTERNAL, Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.service import UNEXPLAINED, Watcher, watch
from llmlat_processor.settings import Settings
from llmlat_processor.window import Limits
from tests.llmlat_processor.otlp import request, span

AT_ONCE = Settings(window=Limits(idle_ns=0, grace_ns=0), tick_s=0.01)
PATIENT = Settings(tick_s=0.01)
WAIT_S = 20


@contextmanager
def watching(
    on_trace: Callable[[ExplainedTrace], None], settings: Settings = AT_ONCE
) -> Iterator[Watcher]:
    watcher = watch("127.0.0.1:0", on_trace, settings=settings)
    try:
        yield watcher
    finally:
        watcher.stop()


def send(watcher: Watcher, *numbers: int, trace: int = 1) -> None:
    """One request of spans of a trace; number 1 is its root."""
    trace_id = trace.to_bytes(16, "big")
    root = (1).to_bytes(8, "big")
    spans = [
        span(number, trace_id=trace_id, parent=b"" if number == 1 else root, kind=INTERNAL)
        for number in numbers
    ]
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    with grpc.insecure_channel(watcher.address) as channel:
        channel.unary_unary(method)(request(spans).SerializeToString(), timeout=10)


def test_spans_of_a_real_exporter_come_out_as_an_explained_trace() -> None:
    finished: SimpleQueue[ExplainedTrace] = SimpleQueue()
    with watching(finished.put) as watcher:
        exporter = OTLPSpanExporter(endpoint=f"http://{watcher.address}", insecure=True)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with provider.get_tracer("app").start_as_current_span("answer"):
            pass
        provider.shutdown()

        explained = finished.get(timeout=WAIT_S)

    (operation,) = explained.trace.operations
    assert (operation.name, operation.scope) == ("answer", "app")
    assert explained.paths.roots[0].e2e.duration_ns == operation.duration_ns


def test_stopping_hands_on_what_is_held() -> None:
    finished: list[ExplainedTrace] = []
    with watching(finished.append, PATIENT) as watcher:
        send(watcher, 2, 3)
        send(watcher, 1)
        send(watcher, 2, trace=2)
        assert finished == []

    assert [len(explained.trace.spans) for explained in finished] == [3, 1]


def test_the_books_balance_while_it_runs_and_at_the_end() -> None:
    finished: SimpleQueue[ExplainedTrace] = SimpleQueue()
    with watching(finished.put) as watcher:
        send(watcher, 1, 2)
        finished.get(timeout=WAIT_S)
        send(watcher, 3)
        books = watcher.books()
        assert books.received == 3
        assert books.explained + books.late + books.held + books.waiting == 3

    books = watcher.books()
    assert (books.received, books.explained, books.traces, books.late) == (3, 2, 1, 1)
    assert str(books) == "3 spans received: 2 in 1 traces, 1 late"


def test_an_exporter_is_sent_away_while_the_worker_is_behind() -> None:
    busy, go_on = Event(), Event()

    def slow(_explained: ExplainedTrace) -> None:
        busy.set()
        go_on.wait(WAIT_S)

    settings = Settings(window=Limits(idle_ns=0, grace_ns=0), waiting_bytes=1, tick_s=0.01)
    with watching(slow, settings) as watcher:
        send(watcher, 1, trace=1)
        assert busy.wait(WAIT_S)
        send(watcher, 1, trace=2)  # an empty mailbox takes any batch
        with pytest.raises(grpc.RpcError, match="too many spans are waiting"):
            send(watcher, 1, trace=3)
        assert watcher.books().waiting >= 1
        go_on.set()

    assert watcher.books().traces == 2


def test_what_the_callback_raises_ends_the_watch_and_is_raised_by_stop() -> None:
    raised = Event()

    def fail(_explained: ExplainedTrace) -> None:
        raised.set()
        raise BrokenPipeError("nobody reads")

    watcher = watch("127.0.0.1:0", fail, settings=AT_ONCE)
    send(watcher, 1)
    assert raised.wait(WAIT_S)

    with pytest.raises(BrokenPipeError, match="nobody reads"):
        watcher.stop()


def test_an_interrupt_while_it_stops_leaves_no_worker_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that waits for ever would keep the whole process."""
    handed_on: SimpleQueue[ExplainedTrace] = SimpleQueue()
    watcher = watch("127.0.0.1:0", handed_on.put, settings=PATIENT)
    send(watcher, 1)
    stop = GrpcReceiver.stop

    def interrupted(receiver: GrpcReceiver) -> None:
        stop(receiver)
        raise KeyboardInterrupt

    monkeypatch.setattr(GrpcReceiver, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watcher.stop()

    assert handed_on.get(timeout=WAIT_S).trace.complete


def test_a_trace_that_we_fail_at_is_counted_and_does_not_end_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A Watcher as `watch` makes it, but with a pipeline that fails at one trace."""
    finished: list[ExplainedTrace] = []

    def explain(spans: Iterable[Span], assumptions: Assumptions) -> ExplainedTrace:
        received = list(spans)
        if received[0].trace_id == (1).to_bytes(16, "big"):
            raise ZeroDivisionError
        return process(received, assumptions)

    watcher = Watcher("127.0.0.1:0", finished.append, AT_ONCE, explain)
    send(watcher, 1, 2, trace=1)
    send(watcher, 1, 2, 3, trace=2)
    watcher.stop()

    books = watcher.books()
    assert (books.received, books.explained, books.traces) == (5, 3, 1)
    assert books.dropped == {UNEXPLAINED: 2}
    assert [len(explained.trace.spans) for explained in finished] == [3]
    assert "could not be explained" in caplog.text


def test_settings_are_those_of_a_watched_copy_unless_given() -> None:
    watcher = watch("127.0.0.1:0", lambda _explained: None)
    watcher.stop()

    assert watcher.books().received == 0
    assert Settings().window.hold_max_ns > Limits().hold_max_ns
