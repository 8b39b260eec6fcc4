"""What one of several workers is told to do: its part of the traces, and of the room."""

from __future__ import annotations

import pickle
from pathlib import Path

from llmlat_processor.service.worker import deployment_of
from llmlat_processor.settings import (
    ClientTls,
    Delivery,
    Deployment,
    Destination,
    JournalSettings,
    Listener,
    Metering,
    ServerTls,
)
from llmlat_processor.window import Limits

TLS = ServerTls(Path("certificate"), Path("key"))
TO = Destination("127.0.0.1:1", tls=ClientTls(), token="secret", headers={"who": "we"})
WHOLE = Deployment(
    grpc=Listener("0.0.0.0:4317", TLS, token="shown at the front"),
    http=Listener("0.0.0.0:4318"),
    spans=TO,
    journal=JournalSettings(max_bytes=1_000),
    state=Path("state"),
    metering=Metering(Destination("127.0.0.1:2"), max_series=7),
    telemetry=Listener("127.0.0.1:9"),
    workers=4,
)
PART = deployment_of(WHOLE, 2, Path("sockets/2.sock"))


def test_it_listens_to_its_parent_alone_who_has_seen_tokens_and_certificates() -> None:
    assert PART.grpc == Listener("unix:sockets/2.sock")
    assert (PART.http, PART.telemetry, PART.workers) == (None, None, 1)


def test_it_sends_as_the_whole_would() -> None:
    assert PART.spans is not None
    assert (PART.spans.token, PART.spans.tls, PART.spans.headers) == (TO.token, TO.tls, TO.headers)


def test_its_metrics_are_its_parents_to_tell() -> None:
    assert PART.metering == Metering(max_series=7)


def test_together_they_keep_no_more_than_one_would() -> None:
    whole, part = WHOLE.settings.window, PART.settings.window
    shared = (
        "held_bytes",
        "traces",
        "revision_bytes",
        "tombstones",
        "tombstone_spans",
        "remembered_traces",
    )

    assert all(getattr(part, name) * 4 <= getattr(whole, name) for name in shared)
    assert PART.journal == JournalSettings(max_bytes=250)
    assert PART.settings.waiting_bytes * 4 <= WHOLE.settings.waiting_bytes
    assert part.idle_ns == whole.idle_ns


def test_none_of_them_holds_a_trace_that_is_larger_than_all_it_may_hold() -> None:
    several = Deployment(spans=TO, workers=1_000)
    window = deployment_of(several, 0, Path("sockets/0.sock")).settings.window

    assert window.trace_bytes == window.held_bytes == Limits().held_bytes // 1_000


def test_a_request_has_room_in_each_queue() -> None:
    tight = Destination("127.0.0.1:1", delivery=Delivery(request_bytes=1_000, queue_bytes=1_500))
    part = deployment_of(Deployment(spans=tight, workers=4), 0, Path("sockets/0.sock"))

    assert part.spans is not None
    assert part.spans.delivery.queue_bytes == 1_000


def test_each_has_a_state_of_its_own() -> None:
    assert PART.state == Path("state/worker-2")


def test_it_can_be_told_to_another_process() -> None:
    plain = deployment_of(Deployment(spans=Destination("127.0.0.1:1")), 0, Path("sockets/0.sock"))

    assert pickle.loads(pickle.dumps(plain)) == plain
