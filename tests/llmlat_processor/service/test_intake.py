"""What an intake accepts, when it does not, and where that is kept before anybody is thanked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
import urllib3

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.edges.journal import Journal
from llmlat_processor.service.doors import Doors
from llmlat_processor.service.intake import FULL, REPLAYING, Intake
from llmlat_processor.settings import JournalSettings, Settings
from llmlat_processor.window import Released, Window
from llmlat_processor.wire import WireSpan, decode
from tests.llmlat_processor.forwarding import METHOD, span
from tests.llmlat_processor.otlp import request
from tests.llmlat_processor.service.deployments import AT_ONCE, LISTENER, PATIENT, WAIT_S, until

JSON = (
    b'{"resourceSpans":['
    b'{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]},'
    b'"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001",'
    b'"spanId":"0000000000000001","name":"first"}]}]},'
    b'{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001",'
    b'"spanId":"0000000000000002","name":"second"}]}]},'
    b'{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]},'
    b'"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001",'
    b'"spanId":"0000000000000003","name":"third"}]}]}]}'
)
"""The first and the third have one origin: joined they come before the second."""


class HandedOn(list[Released]):
    """All that was let go."""

    def __call__(self, released: Sequence[Released], _window: Window) -> None:
        self.extend(released)

    @property
    def spans(self) -> list[WireSpan]:
        return [span for one in self for span in one.spans if isinstance(span, WireSpan)]


@contextmanager
def intake(
    journal: Journal | None = None, *, has_room: bool = True, settings: Settings = AT_ONCE
) -> Iterator[tuple[Intake, HandedOn]]:
    handed = HandedOn()
    doors = Doors(LISTENER, LISTENER)
    one = Intake(doors, settings, handed, lambda: has_room, journal)
    try:
        yield one, handed
    finally:
        one.stop()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "journal", JournalSettings())
    yield opened
    opened.close()


def send(one: Intake, content: bytes) -> None:
    with grpc.insecure_channel(one.addresses[0]) as channel:
        channel.unary_unary(METHOD)(content, timeout=WAIT_S)


def test_spans_are_where_the_journal_has_them_however_they_came(journal: Journal) -> None:
    with intake(journal) as (one, handed):
        url = f"http://{one.addresses[1]}/v1/traces"
        kind = {"content-type": "application/json"}
        assert urllib3.request("POST", url, body=JSON, headers=kind).status == 200

    (entry,) = journal.replay()
    again = decode(entry.content).spans
    assert [one.name for one in again] == ["first", "third", "second"]
    assert {one.name: (one.batch, one.position) for one in handed.spans} == {
        one.name: (entry.batch, position) for position, one in enumerate(again)
    }


def test_of_a_damaged_request_the_journal_has_what_was_kept(journal: Journal) -> None:
    good, bad = span(1), span(2)
    bad.span_id = b""
    with intake(journal) as (one, handed):
        send(one, request([bad, good]).SerializeToString())

    (entry,) = journal.replay()
    assert [one.name for one in decode(entry.content).spans] == ["1/1"]
    assert [one.position for one in handed.spans] == [0]


def test_without_room_nothing_is_accepted_and_nothing_kept(journal: Journal) -> None:
    with intake(journal, has_room=False) as (one, _):
        with pytest.raises(grpc.RpcError, match=FULL):
            send(one, request([span(1)]).SerializeToString())
        assert one.why_not_ready() == FULL

    assert (one.accepted, one.waiting_bytes, journal.batches) == (0, 0, 0)


def test_with_a_journal_that_is_full_nobody_should_send_anything(tmp_path: Path) -> None:
    content = request([span(1)]).SerializeToString()
    full = Journal(tmp_path / "journal", JournalSettings(max_bytes=len(content)))
    full.append(content, 1, sent=True)
    with intake(full) as (one, _):
        until(lambda: one.why_not_ready() != REPLAYING)
        assert one.why_not_ready() == "the journal is full"
    full.close()


def test_what_the_journal_cannot_take_leaves_its_room_to_others(tmp_path: Path) -> None:
    small = Journal(tmp_path / "journal", JournalSettings(max_bytes=1))
    settings = replace(AT_ONCE, waiting_bytes=1)
    with intake(small, settings=settings) as (one, _):
        for _ in range(2):
            with pytest.raises(grpc.RpcError, match="the journal is full"):
                send(one, request([span(1)]).SerializeToString())
        assert one.waiting_bytes == 0
    small.close()


def test_a_worker_that_fails_closes_the_mailbox() -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    one = Intake(Doors(LISTENER), AT_ONCE, fail)
    until(one.work.done)
    with pytest.raises(grpc.RpcError, match=FULL):
        send(one, request([span(1)]).SerializeToString())
    with pytest.raises(ZeroDivisionError):
        one.stop()


def test_what_is_left_and_cannot_be_read_stays_and_ends_nothing(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.append(b"\xff\xff", 1)
    journal.append(b"x\xff", 1, sent=True)
    journal.append(request([span(1)]).SerializeToString(), 1)

    with intake(journal) as (one, handed):
        until(lambda: bool(handed))

    assert [one.name for one in handed.spans] == ["1/1"]
    assert (one.replayed, journal.batches) == (1, 3)
    assert caplog.text.count("cannot be read") == 2


@pytest.mark.parametrize("fault", [ZeroDivisionError, OSError])
def test_a_receiver_that_cannot_end_keeps_nothing_from_being_handed_on(
    fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = GrpcReceiver.stop

    def fail(receiver: GrpcReceiver) -> None:
        stop(receiver)
        raise fault

    handed = HandedOn()
    one = Intake(Doors(LISTENER), PATIENT, handed)
    send(one, request([span(1)]).SerializeToString())
    monkeypatch.setattr(GrpcReceiver, "stop", fail)
    with pytest.raises(fault):
        one.stop()

    assert (one.work.done(), [span.name for span in handed.spans]) == (True, ["1/1"])
