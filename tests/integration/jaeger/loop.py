"""The loop of examples/jaeger for the time of a test: Collector, processor, Collector, Jaeger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from backends import Addresses, collector, jaeger, processor
from children import Children
from llmlat_semconv.spans import lane_span_name
from tests.integration.jaeger.storage import Jaeger, Stored

T = TypeVar("T")

PATIENCE_S = 120
_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_LAST_BYTES = 2_000


@dataclass(frozen=True)
class Loop:
    """What runs, and what can be asked of it."""

    addresses: Addresses
    folder: Path

    @property
    def jaeger(self) -> Jaeger:
        """What has arrived at the end."""
        return Jaeger(self.addresses.jaeger_http, self.addresses.jaeger_grpc)

    def send(self, request: ExportTraceServiceRequest) -> None:
        """Export to the collector, as an app does."""
        with grpc.insecure_channel(self.addresses.otlp_grpc) as channel:
            export = channel.unary_unary(_EXPORT)
            export(request.SerializeToString(), timeout=PATIENCE_S)

    def stored(self, trace_id: bytes) -> list[Stored]:
        """A trace's spans as soon as its lane, which is sent last, has arrived.

        The collector's batches may part a trace: it is whole when every parent is there.
        """
        return self.until(lambda: _whole(self.jaeger.stored(trace_id)))

    def until(self, seen: Callable[[], T]) -> T:
        """Wait until something is there."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := seen()):
            assert time.monotonic() < deadline, f"not seen in {PATIENCE_S} s\n{self.last_words()}"
            time.sleep(0.1)
        return found

    def last_words(self) -> str:
        """The end of what each process has logged."""
        return last_words(self.folder)


@contextmanager
def running_loop(folder: Path, *options: str, overlays: Sequence[str] = ()) -> Iterator[Loop]:
    """All of it on free ports; every process is stopped by its id.

    Args:
        folder: for logs, and for what the collector queues.
        options: of `llmlat processor`.
        overlays: YAML that changes the collector's configuration, one after the other.

    Raises:
        MissingPeerError: `make peers` has not been run.
    """
    addresses = Addresses.free()
    entrance, storage = collector(addresses, folder / "queue"), jaeger(addresses)
    with Children(folder) as children:
        middle = children.start("processor", processor(addresses, folder / "processor", *options))
        last = children.start("jaeger", storage.command, **storage.environment)
        last.healthy(storage.ready)
        middle.listening(addresses.processor)
        # Started last, it finds both at its first try instead of seconds later at the next.
        command = [*entrance.command, *(f"--config=yaml:{each}" for each in overlays)]
        first = children.start("collector", command, **entrance.environment)
        first.healthy(entrance.ready)
        yield Loop(addresses, folder)


def last_words(folder: Path) -> str:
    """The end of what each process has logged in a folder."""
    logs = sorted([*folder.glob("*.err"), *folder.glob("*.out")])
    return "\n".join(f"── {each.name}\n{_end_of(each)}" for each in logs)


def _whole(spans: list[Stored]) -> list[Stored]:
    """The spans, or none as long as a lane or the parent of one is missing."""
    ids = {each.span.span_id for each in spans}
    parents = {each.span.parent_span_id for each in spans} - {b""}
    has_lane = any(each.span.name == lane_span_name() for each in spans)
    return spans if has_lane and parents <= ids else []


def _end_of(log: Path) -> str:
    return log.read_bytes()[-_LAST_BYTES:].decode(errors="replace")
