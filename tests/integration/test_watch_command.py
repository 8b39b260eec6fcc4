"""`llmlat watch` as a process: an app exports to it, and whoever started it reads its pipe."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

PATIENCE_S = 30

Watching = tuple["subprocess.Popen[str]", str]


@contextmanager
def watching(*options: str) -> Iterator[Watching]:
    """A watch on a free port, and the endpoint that it told."""
    command = [sys.executable, "-m", "llmlat_processor.cli", "watch", "--listen=127.0.0.1:0"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process, _endpoint(process)
        finally:
            process.kill()


def _endpoint(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if told := re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)", line):
            return told.group(1)
    raise AssertionError("it ended before it had said where it listens")


def export_a_trace(endpoint: str) -> None:
    """Two spans, exported before this returns."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint, insecure=True)))
    tracer = provider.get_tracer(__name__)
    with tracer.start_as_current_span("errand"), tracer.start_as_current_span("step"):
        pass
    provider.shutdown()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ended_from_outside_it_draws_what_it_holds_and_tells_its_books(
    ending: signal.Signals,
) -> None:
    with watching() as (process, endpoint):
        export_a_trace(endpoint)
        process.send_signal(ending)
        said, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0
    assert "errand" in said
    assert "└ step" in said
    assert said.endswith("2 spans received: 2 in 1 traces\n")


def test_after_enough_traces_it_ends_by_itself() -> None:
    with watching("--traces=1", "--json") as (process, endpoint):
        export_a_trace(endpoint)
        said, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0
    (line,) = [line for line in said.splitlines() if line.startswith("{")]
    assert [one["name"] for one in json.loads(line)["operations"]] == ["errand", "step"]


def test_a_port_that_is_taken_is_told_with_a_way_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = subprocess.run(
            [sys.executable, "-m", "llmlat_processor.cli", "watch", f"--listen={address}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"llmlat watch: cannot listen on {address}" in ran.stderr
    assert "choose another port" in ran.stderr
