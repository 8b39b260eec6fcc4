"""grpc.health.v1, as probes and clients ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges import grpc_health
from llmlat_processor.edges.grpc_health import (
    MOST_WATCHERS,
    NOT_SERVING,
    SERVICE,
    SERVICE_UNKNOWN,
    SERVING,
    asking_for,
)
from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.settings import Listener
from tests.llmlat_processor.receiving import MIB, Taken

TRACES = "opentelemetry.proto.collector.trace.v1.TraceService"
CHECK, WATCH = f"/{SERVICE}/Check", f"/{SERVICE}/Watch"


class Readiness:
    """Says why not, as long as there is something to say."""

    why = ""

    def __call__(self) -> str:
        return self.why


@contextmanager
def serving(ready: Readiness) -> Iterator[tuple[GrpcReceiver, grpc.Channel]]:
    listener = Listener("127.0.0.1:0", token="secret")
    receiver = GrpcReceiver(listener, Taken(), max_message_bytes=MIB, ready=ready)
    try:
        with grpc.insecure_channel(receiver.address) as channel:
            yield receiver, channel
    finally:
        receiver.stop()


@pytest.mark.parametrize("service", ["", TRACES])
def test_who_asks_is_told_whether_spans_are_received_and_needs_no_token(service: str) -> None:
    ready = Readiness()

    with serving(ready) as (_, channel):
        check = channel.unary_unary(CHECK)
        before = check(asking_for(service), timeout=10)
        ready.why = "the disk is full"
        after = check(asking_for(service), timeout=10)

    assert (before, after) == (SERVING, NOT_SERVING)


def test_an_unknown_service_is_said_to_be_unknown() -> None:
    with serving(Readiness()) as (_, channel):
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(CHECK)(asking_for("other"), timeout=10)
        watching = channel.unary_stream(WATCH)(asking_for("other"), timeout=10)

        assert next(watching) == SERVICE_UNKNOWN
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_watcher_is_told_of_changes_and_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_health, "_LOOK_S", 0.01)
    ready = Readiness()

    with serving(ready) as (receiver, channel):
        watching = channel.unary_stream(WATCH)(b"", timeout=10)
        told = [next(watching)]
        ready.why = "starting"
        told.append(next(watching))
        ready.why = ""
        told.append(next(watching))
        receiver.stop()
        told += watching

    assert told == [SERVING, NOT_SERVING, SERVING, NOT_SERVING]


def test_more_watchers_than_there_are_places_are_refused_at_once() -> None:
    with serving(Readiness()) as (_, channel):
        watch = channel.unary_stream(WATCH)
        watching = [watch(b"", timeout=10) for _ in range(MOST_WATCHERS)]
        told = [next(watcher) for watcher in watching]
        with pytest.raises(grpc.RpcError, match="ask with Check"):
            next(watch(b"", timeout=10))

    assert told == [SERVING] * MOST_WATCHERS
