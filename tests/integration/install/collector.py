"""A collector on loopback that takes OTLP over HTTP, and programs that send to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.integration.serving import serving

PATIENCE_S = 60
BIN = Path(sys.executable).parent

_bytecode = TemporaryDirectory()
"""Of the programs that are run: a library is compiled once, whatever our own environment says."""


@dataclass(frozen=True, slots=True)
class Received:
    """A span, and the attributes of the process that has sent it."""

    name: str
    process: Mapping[str, Any]


@dataclass(slots=True)
class Collector:
    """What has come, and what is answered.

    Attributes:
        url: Where it listens.
        spans: In the order in which they have come.
        status: Of every answer.
        rejected: Spans of each request that are refused in a partial success.
    """

    url: str = ""
    spans: list[Received] = field(default_factory=list)
    status: int = 200
    rejected: int = 0

    @property
    def names(self) -> list[str]:
        """The spans' names, sorted."""
        return sorted(span.name for span in self.spans)

    def take(self, body: bytes) -> bytes:
        """Keep a request's spans; its answer."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            process = {
                each.key: each.value.string_value or each.value.int_value
                for each in resource.resource.attributes
            }
            self.spans += [
                Received(span.name, process)
                for scope in resource.scope_spans
                for span in scope.spans
            ]
        partial = ExportTracePartialSuccess(rejected_spans=self.rejected, error_message="too old")
        answer = ExportTraceServiceResponse(partial_success=partial if self.rejected else None)
        return answer.SerializeToString()


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector for the time of a test."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = collector.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(collector.status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield collector


def environment(endpoint: str | None = None, **more: str) -> dict[str, str]:
    """The variables of a program: ours of `OTEL_*` and `LLMLAT_*`, and no others."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LLMLAT_"))}
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    ours = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "NO_COLOR": "1",
        "PYTHONPYCACHEPREFIX": _bytecode.name,
    }
    if endpoint is not None:
        ours["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    return {**inherited, **ours, **more}


def run(
    command: list[str], variables: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        command,
        env=dict(variables),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def run_python(
    program: str, variables: Mapping[str, str], *options: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python code to its end."""
    return run([sys.executable, *options, "-c", program], variables, cwd)
