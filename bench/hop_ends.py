"""Both ends of a hop, each a process of its own: what sends spans, and what counts them.

python -m bench.hop_ends count HOST:PORT          until it is stopped
python -m bench.hop_ends send HOST:PORT FILE      until all of the file has been taken over
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_TRACES: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
_COUNTS: Final = "bench.Counts"
_OURS: Final = "llmlat_processor"
_AT_ONCE: Final = 2
_AGAIN_S: Final = 0.02
_PATIENCE_S: Final = 120
_LENGTH_BYTES: Final = 4
_LATER: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}


def write(path: Path, requests: Iterable[bytes]) -> None:
    """Write requests for `send`."""
    with path.open("wb") as file:
        for content in requests:
            file.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)


def counted(address: str) -> int:
    """How many spans have come to a counting end so far, without those that the processor made."""
    with grpc.insecure_channel(address) as channel:
        asked = channel.unary_unary(f"/{_COUNTS}/Spans")
        return int.from_bytes(asked(b"", timeout=_PATIENCE_S, wait_for_ready=True), "big")


def _read(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    at = 0
    while at < len(content):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(content[at:begin], "big")
        yield content[begin:at]


def _send(address: str, path: Path) -> None:
    """Send each request until it is taken over; two at once, as the exporter of a collector may."""
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(_AT_ONCE) as threads:
        export = channel.unary_unary(f"/{_TRACES}/Export")

        def until_taken(content: bytes) -> None:
            for _ in count():
                try:
                    export(content, timeout=_PATIENCE_S, wait_for_ready=True)
                except grpc.RpcError as error:
                    if error.code() not in _LATER:
                        raise
                    time.sleep(_AGAIN_S)
                else:
                    return

        list(threads.map(until_taken, _read(path)))


def _count(address: str) -> None:
    spans = [0]

    def take(content: bytes, _context: Any) -> bytes:
        spans[0] += _spans(content)
        return b""

    def tell(_content: bytes, _context: Any) -> bytes:
        return spans[0].to_bytes(8, "big")

    handlers = {
        _TRACES: {"Export": grpc.unary_unary_rpc_method_handler(take)},
        _COUNTS: {"Spans": grpc.unary_unary_rpc_method_handler(tell)},
    }
    generic = [grpc.method_handlers_generic_handler(*each) for each in handlers.items()]
    unbounded = [("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]
    server = grpc.server(ThreadPoolExecutor(1), handlers=generic, options=unbounded)
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def _spans(content: bytes) -> int:
    """Spans of a request, without lanes."""
    return sum(
        len(scope.spans)
        for resource in ExportTraceServiceRequest.FromString(content).resource_spans
        for scope in resource.scope_spans
        if scope.scope.name != _OURS
    )


def main(arguments: list[str]) -> None:
    """Be one of the ends."""
    end, address, *files = arguments
    if end == "count":
        _count(address)
    else:
        _send(address, Path(files[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
