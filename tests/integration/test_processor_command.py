"""`llmlat processor` as a process, between a real exporter and a destination that may be down."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from tests.llmlat_processor.sink import Sink, rejecting, sink

PATIENCE_S = 30
COMMAND = [sys.executable, "-m", "llmlat_processor.cli", "processor"]


class Running:
    """The command on a free port, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said = ""
        self.address = ""
        while not self.address:
            told = re.search(r"Receiving OTLP on ([\d.:]+),", self.hear())
            self.address = told.group(1) if told else ""

    def hear(self) -> str:
        """The next line."""
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert line, f"it ended: {self.said}"
        self.said += line
        return line

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Exit code, and the books."""
        self._process.send_signal(how)
        _, rest = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, rest.splitlines()[-1]


@contextmanager
def processor(destination: str, *options: str) -> Iterator[Running]:
    command = [*COMMAND, "--listen=127.0.0.1:0", f"--export={destination}", "--explain=all"]
    with (
        TemporaryDirectory() as state,
        subprocess.Popen(
            [*command, f"--state={state}", *options], stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            yield Running(process)
        finally:
            process.kill()


def a_trace() -> list[ReadableSpan]:
    """Three finished spans of an app, with attributes, events and an error."""
    finished = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(finished))
    tracer = provider.get_tracer("app", "1.2.3", "https://example.test/schema")
    with tracer.start_as_current_span("errand", attributes={"customer": ("a", "b")}) as errand:
        errand.add_event("left", {"with": 2})
        with tracer.start_as_current_span("step"):
            pass
        with (
            pytest.raises(KeyError),
            tracer.start_as_current_span("failing step"),
        ):
            raise KeyError("key")
    return list(finished.get_finished_spans())


def export(address: str, spans: list[ReadableSpan]) -> None:
    exporter = OTLPSpanExporter(f"http://{address}", insecure=True)
    exporter.export(spans)
    exporter.shutdown()


def without_what_was_added(message: Message) -> Message:
    bare = Message.FromString(message.SerializeToString())
    ours = names.LLMLAT_CRITICAL_PATH_DURATION.partition(".")[0]
    kept = [pair for pair in message.attributes if not pair.key.startswith(ours)]
    del bare.attributes[:]
    bare.attributes.extend(kept)
    return bare


def originals(destination: Sink) -> list[Message]:
    return [message for _, scope, message in destination.spans if scope.scope.name != OWN_SCOPE]


def as_exported(spans: list[ReadableSpan]) -> list[Message]:
    (resource_spans,) = encode_spans(spans).resource_spans
    return list(resource_spans.scope_spans[0].spans)


def by_id(messages: list[Message]) -> list[Message]:
    return sorted(messages, key=lambda message: message.span_id)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ended_from_outside_it_sends_what_it_holds_and_tells_its_books(
    ending: signal.Signals,
) -> None:
    spans = a_trace()
    with sink() as destination, processor(destination.address) as running:
        export(running.address, spans)
        export(running.address, spans[::-1])  # a batch that was retried, in another order
        assert destination.spans == []
        code, books = running.end(ending)
        arrived = originals(destination)
        lane = [message.name for _, s, message in destination.spans if s.scope.name == OWN_SCOPE]

    assert by_id(list(map(without_what_was_added, arrived))) == by_id(as_exported(spans))
    assert lane[0] == "critical path"
    assert len(lane) > 1
    assert code == 0
    count = 3 + len(lane)
    assert books == (
        f"6 spans received, {len(lane)} added: {count} sent, 3 repeated; 1 traces explained"
    )


def test_a_trace_is_sent_as_soon_as_it_is_complete() -> None:
    spans = a_trace()
    with sink() as destination, processor(destination.address, "--idle=0.1") as running:
        export(running.address, spans[:2])
        export(running.address, spans[2:])
        destination.wait_for_spans(4)
        root = next(message for message in originals(destination) if message.name == "errand")
        keys = [pair.key for pair in root.attributes]
        running.end()

    assert keys[0] == "customer"
    assert names.LLMLAT_CRITICAL_PATH_SUMMARY in keys


def test_a_destination_that_was_down_gets_everything_when_it_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    spans = a_trace()
    with processor(address, "--idle=0.1") as running:
        assert running.hear() == f"Nobody answers at {address} yet; spans wait until it does.\n"
        export(running.address, spans)
        assert f"not taken by {address}, trying again" in running.hear()
        with sink(address=address) as destination:
            destination.wait_for_spans(4)
            code, books = running.end()
            assert len(originals(destination)) == 3

    assert code == 0
    assert "dropped" not in books


def test_what_the_destination_rejects_is_said_and_counted() -> None:
    words = "timestamps too old"
    with (
        sink(rejecting(2, words)) as destination,
        processor(destination.address, "--idle=0", "--lane=off") as running,
    ):
        export(running.address, a_trace())
        assert f"2 of 3 spans rejected by {destination.address}: {words}" in running.hear()
        _, books = running.end()

    assert books == (
        "3 spans received, 0 added: 1 sent, 2 dropped (rejected by the destination); "
        "1 traces explained"
    )


def test_to_send_to_oneself_is_refused_with_words() -> None:
    ran = subprocess.run(
        [*COMMAND, "--listen=127.0.0.1:4317", "--export=localhost:4317"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "llmlat processor: localhost:4317 is where it listens" in ran.stderr


def test_a_port_that_is_taken_is_told_with_a_way_out() -> None:
    with sink() as destination:
        ran = subprocess.run(
            [*COMMAND, f"--listen={destination.address}", "--export=127.0.0.1:1"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"llmlat processor: cannot listen on {destination.address}" in ran.stderr
    assert "choose another port" in ran.stderr


def test_by_a_config_file_it_does_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "processor.yaml"
    spans = a_trace()
    with sink() as destination:
        file.write_text(
            "receivers: {grpc: {endpoint: '127.0.0.1:0'}}\n"
            f"destinations: {{spans: {{endpoint: '{destination.address}'}}}}\n"
            "window: {idle: 100ms}\n"
            "views: {lane: off, explain: all}\n"
            f"state: {{directory: '{tmp_path}'}}\n"
            "telemetry: null\n",
            encoding="utf-8",
        )
        command = [*COMMAND, f"--config={file}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                running = Running(process)
                export(running.address, spans)
                destination.wait_for_spans(3)
                code, books = running.end()
            finally:
                process.kill()
        assert by_id(list(map(without_what_was_added, originals(destination)))) == by_id(
            as_exported(spans)
        )

    assert code == 0
    assert books == "3 spans received, 0 added: 3 sent; 1 traces explained"


def test_a_config_file_with_problems_is_told_with_lines_and_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "processor.yaml"
    file.write_text("mode: tab\nwokers: 2\n", encoding="utf-8")

    ran = subprocess.run(
        [*COMMAND, f"--config={file}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"{file}:1: mode: 'tab' is none of inline, tap\n"
        f"{file}:2: wokers: no such key; did you mean workers?\n"
    )
