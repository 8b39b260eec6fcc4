"""Several processes as one: each trace by one of them, none lost where one of them dies."""

from __future__ import annotations

import json
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
import urllib3
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.journal import Journal
from llmlat_processor.model.status import Status
from llmlat_processor.service import crew, run, sharded
from llmlat_processor.service.crew import CrewMember, WorkerError
from llmlat_processor.service.processor import JOURNAL
from llmlat_processor.service.sharded import Sharded
from llmlat_processor.service.worker import Ask
from llmlat_processor.settings import Deployment, Listener
from tests.llmlat_processor.forwarding import lane_of, span
from tests.llmlat_processor.service.deployments import (
    HURRIED,
    KEPT,
    LISTENER,
    deployed,
    inline,
    kept_batches,
    names,
    nobody,
    post,
    until,
)
from tests.llmlat_processor.sink import Sink, sink

WORKERS = 2


def shared(address: str, state: Path | None = None) -> Deployment:
    deployment = inline(address, state)
    return replace(deployment, workers=WORKERS, http=LISTENER, telemetry=LISTENER)


@pytest.fixture(scope="module")
def destination() -> Iterator[Sink]:
    with sink() as server:
        yield server


@pytest.fixture(scope="module")
def at_work(destination: Sink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sharded]:
    with deployed(shared(destination.address, tmp_path_factory.mktemp("state"))) as one:
        assert isinstance(one, Sharded)
        yield one


def ready(one: Sharded) -> None:
    until(lambda: not one.why_not_ready())


def process_of(one: Sharded, number: int) -> int:
    pid = one._crew[number]._process.pid
    assert pid is not None
    return pid


# ── At work ──────────────────────────────────────────────────────────────────────────────────────


def test_each_trace_is_explained_whole_whoever_has_it(at_work: Sharded, destination: Sink) -> None:
    before = at_work.books().traces
    post(at_work, *(span(n, trace=trace) for n in (1, 2) for trace in range(10, 16)))
    until(lambda: at_work.books().traces == before + 6 and not at_work.books().queued)

    books = [member.report().status.books for member in at_work._crew]
    assert all(one.traces for one in books)
    assert {f"{trace}/{n}" for trace in range(10, 16) for n in (1, 2)} <= {*names(destination)}
    assert len(lane_of(destination)) == at_work.books().added


def test_damaged_spans_are_told_to_whoever_sent_them(at_work: Sharded) -> None:
    before = at_work.books().refused
    bad = span(2, trace=20)
    bad.span_id = b""
    answer = ExportTraceServiceResponse.FromString(post(at_work, span(1, trace=20), bad))

    assert answer.partial_success.rejected_spans == 1
    assert "1 of 2 spans refused" in answer.partial_success.error_message
    assert at_work.books().refused == before + 1


@pytest.mark.parametrize(
    ("spans", "status", "refused"),
    [
        ('{"traceId":"00000000000000000000000000000021","spanId":"0000000000000001"}', 200, 0),
        ('{"traceId":"none"}', 400, 1),
    ],
)
def test_json_is_read_at_the_front(at_work: Sharded, spans: str, status: int, refused: int) -> None:
    before = at_work.books()
    body = f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}'
    url = f"http://{at_work.addresses[1]}/v1/traces"
    answer = urllib3.request(
        "POST", url, body=body.encode(), headers={"content-type": "application/json"}
    )

    assert (answer.status, at_work.books().refused - before.refused) == (status, refused)
    until(lambda: at_work.books().received == before.received + 1 - refused)


def test_a_request_without_spans_is_a_success(at_work: Sharded) -> None:
    assert not ExportTraceServiceResponse.FromString(post(at_work)).HasField("partial_success")


def test_what_is_no_export_is_refused_at_the_front(at_work: Sharded) -> None:
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    channel = grpc.insecure_channel(at_work.addresses[0])
    with channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(method)(b"\xff\xff", timeout=20)

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_it_tells_of_all_of_them_together(at_work: Sharded) -> None:
    ready(at_work)
    pages = {
        path: urllib3.request("GET", f"http://{at_work.telemetry_address}{path}")
        for path in ("/healthz", "/readyz", "/metrics", "/status")
    }
    told = Status.of(json.loads(pages["/status"].data))

    assert {path: page.status for path, page in pages.items()} == dict.fromkeys(pages, 200)
    assert [one.name for one in told.workers] == ["worker-0", "worker-1"]
    assert sum(one.books.received for one in told.workers) == told.books.received
    received = f"llmlat_processor_incoming_items_total {told.books.received:.1f}"
    assert received in pages["/metrics"].data.decode()


def test_how_it_is_at_is_told_without_all_its_series(at_work: Sharded) -> None:
    """A terminal shows it four times a second."""
    member = at_work._crew[0]
    whole = at_work.families()
    known = member._last.families
    assert whole
    assert member.report().status.books.received
    assert member._last.families is known


def test_nobody_else_gets_at_the_sockets_of_the_workers(at_work: Sharded) -> None:
    socket = at_work._crew[0]._socket

    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert len(str(socket)) < 100


# ── Deaths ───────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_is_killed_comes_again_with_what_it_had_accepted(tmp_path: Path) -> None:
    address = nobody()
    with deployed(shared(address, tmp_path)) as one:
        assert isinstance(one, Sharded)
        post(one, span(1, trace=2), span(2, trace=2), span(1, trace=3), span(2, trace=3))
        os.kill(process_of(one, 0), signal.SIGKILL)
        until(lambda: one._crew[0].restarts == 1 and not one.why_not_ready())
        with sink(address=address) as server:
            until(lambda: one.books().traces == 2 and not one.books().queued)
            assert {*names(server)} == {"2/1", "2/2", "3/1", "3/2"}
        assert one.books().replayed == 2


def test_while_a_worker_is_started_nobody_waits_to_be_told_so(at_work: Sharded) -> None:
    member = at_work._crew[1]
    with member._lock:  # as whoever starts it again has it
        assert member.report() is member._last
        url = f"http://{at_work.telemetry_address}/healthz"
        assert urllib3.request("GET", url).status == 200


@contextmanager
def stopped(one: Sharded, number: int) -> Iterator[None]:
    """A worker that lives and does nothing."""
    pid = process_of(one, number)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_worker_that_does_not_answer_keeps_nobody_waiting(
    at_work: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "SILENT_S", 0.1)
    with stopped(at_work, 0):
        until(lambda: at_work.why_not_ready() == "worker-0 does not answer")
        assert len(at_work.status().workers) == WORKERS
        with pytest.raises(grpc.RpcError, match="worker-0 does not answer"):
            post(at_work, span(1, trace=40))
    ready(at_work)
    post(at_work, span(1, trace=40))

    assert at_work.books().balances
    assert at_work._crew[0].restarts == 0


def test_an_answer_that_nobody_has_read_is_not_owed(
    at_work: Sharded, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = at_work._crew[1]
    monkeypatch.setattr(crew, "SILENT_S", 0.001)
    with member._lock:  # nobody else asks meanwhile
        if not member._is_asked:
            member._pipe.send(Ask.STATUS)
            member._note_asked()
        until(member._pipe.poll)
        assert member.is_up
        assert member._silent_s() == 0
    monkeypatch.undo()
    until(lambda: member.report() is not None and not member._is_asked)


def test_a_worker_that_never_answers_is_started_again(
    at_work: Sharded, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crew, "HANGS_S", 0.1)
    with stopped(at_work, 0):
        until(lambda: at_work._crew[0].restarts == 1)
        monkeypatch.undo()
    ready(at_work)

    assert "worker-0 has not answered for 0 s and is started again" in caplog.text


def test_a_worker_that_cannot_start_says_why_and_leaves_none(tmp_path: Path) -> None:
    in_use = Journal(tmp_path / "worker-1" / JOURNAL, KEPT)
    other = Journal(tmp_path / "worker-0" / JOURNAL, KEPT)
    other.close()
    with pytest.raises(OSError, match=r"worker-1: .*another processor uses it"):
        run(shared(nobody(), tmp_path))
    in_use.close()

    assert kept_batches(tmp_path / "worker-0") == 0  # nobody has it any more


# ── The end ──────────────────────────────────────────────────────────────────────────────────────


def test_another_number_of_workers_sends_what_was_left(tmp_path: Path) -> None:
    address = nobody()
    several = replace(inline(address, tmp_path, delivery=HURRIED), workers=WORKERS)
    with deployed(several) as first:
        post(first, *(span(1, trace=trace) for trace in range(1, 5)))
    assert first.books().dropped == {}
    assert first.books().queued == 4 + first.books().added

    with sink(address=address) as server, deployed(inline(address, tmp_path)) as second:
        until(lambda: second.books().traces == 4)

    assert names(server) == ["1/1", "2/1", "3/1", "4/1"]


def test_a_second_interrupt_waits_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = run(replace(inline(nobody(), tmp_path), workers=WORKERS))
    assert isinstance(one, Sharded)

    def interrupted(_member: CrewMember, _timeout_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CrewMember, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.stop()

    assert not any(member._process.is_alive() for member in one._crew)


# ── Without processes ────────────────────────────────────────────────────────────────────────────


def test_where_files_go_to_a_folder_with_a_long_path_the_sockets_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    folder = sharded._folder()

    assert len(str(folder)) < sharded.LONGEST_FOLDER
    folder.rmdir()


class Absent:
    """A worker that cannot be started."""

    def __init__(self, looked: list[str], name: str) -> None:
        self._looked, self._name = looked, name

    def look_after(self) -> None:
        self._looked.append(self._name)
        raise WorkerError(f"{self._name} has ended instead of answering")

    def report(self) -> None:
        return None


def test_one_that_cannot_be_started_keeps_no_other_from_being_looked_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looked: list[str] = []
    one = Sharded.__new__(Sharded)
    one._crew = [Absent(looked, "a"), Absent(looked, "b")]  # type: ignore[list-item]

    one._look_after()

    assert (looked, caplog.text.count("it is tried again")) == (["a", "b"], 2)


def test_an_address_that_is_taken_leaves_no_worker_behind() -> None:
    with sink() as taken:
        deployment = replace(shared(nobody()), grpc=Listener(taken.address))
        with pytest.raises(OSError, match=taken.address.rpartition(":")[2]):
            run(deployment)
