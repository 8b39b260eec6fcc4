"""Both ends of a soak, processes of their own: what sends at a rate, and what notes what comes.

python -m bench.soaking_ends send HOST:PORT RATE SECONDS LEDGER    until then, or until told to end
python -m bench.soaking_ends note HOST:PORT LEDGER                 until told to end

SIGTERM tells them; a sender still sends to their end the traces that it has begun. Each writes its
ledger when it ends.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

import grpc  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bench.soaking_ledger import Seen, Sent
from bench.soaking_load import Load, Sending, groups

_TRACES: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
_AT_ONCE: Final = 4
_AGAIN_S: Final = 0.1
_PATIENCE_S: Final = 30
_SEED: Final = 1
_LATER: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
_REQUESTS_PER_S: Final = 20
_FEWEST: Final = 20
_MOST: Final = 500


def request_spans(rate: int) -> int:
    """About how many spans are in a request at so many spans per second."""
    return max(_FEWEST, min(_MOST, rate // _REQUESTS_PER_S))


# ── What sends ───────────────────────────────────────────────────────────────────────────────────


class _Sender:
    def __init__(self, address: str, rate: int) -> None:
        self.load = Load(groups(request_spans(rate), _SEED))
        self.sent = Sent()
        self._rate = rate
        self._lock = Lock()
        self._channel = grpc.insecure_channel(address)
        self._export = self._channel.unary_unary(f"/{_TRACES}/Export")

    def send(self, seconds: float) -> None:
        """Send at the rate; who is late sends at once, until it is not."""
        begin_s = time.monotonic()
        spans = 0
        under_way: list[Future[None]] = []
        with ThreadPoolExecutor(_AT_ONCE) as threads, self._channel:
            for sending in self.load.sendings(time.time_ns):
                time.sleep(max(0.0, begin_s + spans / self._rate - time.monotonic()))
                with self._lock:
                    self.sent.begin(sending)
                under_way.append(threads.submit(self._until_taken, sending))
                if len(under_way) > _AT_ONCE:
                    under_way.pop(0).result()
                spans += sending.spans
                if time.monotonic() - begin_s >= seconds:
                    self.load.end()
            for each in under_way:
                each.result()
        self.sent.seconds = time.monotonic() - begin_s

    def _until_taken(self, sending: Sending) -> None:
        for turn in count():
            try:
                self._export(sending.content, timeout=_PATIENCE_S, wait_for_ready=True)
            except grpc.RpcError as error:
                if error.code() not in _LATER:
                    raise
                time.sleep(_AGAIN_S)
            else:
                with self._lock:
                    self.sent.taken(sending.traces, time.monotonic_ns())
                    self.sent.again += turn > 0
                return


def _send(address: str, rate: int, seconds: float, ledger: Path) -> None:
    sender = _Sender(address, rate)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sender.load.end())
    sender.send(seconds)
    sender.sent.write(ledger)


# ── What notes ───────────────────────────────────────────────────────────────────────────────────


class _Span(Protocol):
    trace_id: bytes
    span_id: bytes


class _Spans(Protocol):
    spans: Iterable[_Span]


class _Resource(Protocol):
    scope_spans: Iterable[_Spans]


class _Request(Protocol):
    resource_spans: Iterable[_Resource]


def _reader() -> Callable[[bytes], _Request]:
    """Reads the ids of a request, and passes over the rest: a soak has the CPU for others."""
    file = descriptor_pb2.FileDescriptorProto(name="soak.proto", package="soak", syntax="proto2")
    field = descriptor_pb2.FieldDescriptorProto
    nested = {
        "Request": ("resource_spans", 1),
        "Resource": ("scope_spans", 2),
        "Scope": ("spans", 2),
    }
    inner = {"Request": "Resource", "Resource": "Scope", "Scope": "Span"}
    for message, (name, number) in nested.items():
        file.message_type.add(name=message).field.add(
            name=name,
            number=number,
            label=field.LABEL_REPEATED,
            type=field.TYPE_MESSAGE,
            type_name=f".soak.{inner[message]}",
        )
    span = file.message_type.add(name="Span")
    for number, name in enumerate(("trace_id", "span_id"), 1):
        span.field.add(name=name, number=number, label=field.LABEL_OPTIONAL, type=field.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    request: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("soak.Request"))
    read: Callable[[bytes], _Request] = request.FromString
    return read


def note(seen: Seen, request: _Request, now_ns: int) -> None:
    """Note all spans of a request."""
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                seen.come(span.trace_id, span.span_id, now_ns)


read_ids: Final = _reader()


def _note(address: str, ledger: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    seen = Seen()

    def take(content: bytes, _context: Any) -> bytes:
        note(seen, read_ids(content), time.monotonic_ns())
        return b""

    handlers = {"Export": grpc.unary_unary_rpc_method_handler(take)}
    server = grpc.server(
        ThreadPoolExecutor(1),
        handlers=[grpc.method_handlers_generic_handler(_TRACES, handlers)],
        options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)],
    )
    server.add_insecure_port(address)
    server.start()
    signal.sigwait([signal.SIGTERM])
    server.stop(None).wait()
    seen.write(ledger)


def main(arguments: list[str]) -> None:
    """Be one of the ends."""
    end, address, *rest, ledger = arguments
    if end == "note":
        _note(address, Path(ledger))
    else:
        rate, seconds = rest
        _send(address, int(rate), float(seconds), Path(ledger))


if __name__ == "__main__":
    main(sys.argv[1:])
