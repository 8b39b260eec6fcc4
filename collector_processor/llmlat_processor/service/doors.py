"""Where spans come in: the receivers of a processor, opened and closed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.edges.http_receiver import HttpReceiver
from llmlat_processor.edges.receiver import Ready, Take
from llmlat_processor.settings import Listener
from llmlat_processor.wire import Decoded, decode
from llmlat_processor.wire.span_count import check_count

Read = Callable[[bytes], Decoded]
"""Reads a request in protobuf; raises UndecodableError where it is none."""


class Receiver(Protocol):
    """A receiver at work."""

    @property
    def address(self) -> str:
        """Host and port that it listens on."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What it has refused, and what it has thanked for and dropped, by kind."""

    def stop(self) -> None:
        """Take no more."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where spans come in.

    Attributes:
        grpc: OTLP over gRPC; None for not at all.
        http: the same over HTTP.
    """

    grpc: Listener | None = None
    http: Listener | None = None


def opened(
    doors: Doors, take: Take, ready: Ready, max_message_bytes: int, *, read: Read = decode
) -> Sequence[Receiver]:
    """Bind and serve at all of them, or at none.

    Args:
        doors: where.
        take: takes spans over; called from several threads.
        ready: whether there is a point in sending now.
        max_message_bytes: largest request, after decompression.
        read: reads requests in protobuf.

    Raises:
        OSError: an address cannot be had; the message says what to do.
        ValueError: one of them is not a host and a port.
    """
    counted = _counted(read)
    receivers: list[Receiver] = []
    with ExitStack() as stack:
        if doors.grpc is not None:
            receivers.append(
                GrpcReceiver(
                    doors.grpc, take, max_message_bytes=max_message_bytes, ready=ready, read=counted
                )
            )
            stack.callback(receivers[-1].stop)
        if doors.http is not None:
            receivers.append(
                HttpReceiver(
                    doors.http, take, max_message_bytes=max_message_bytes, ready=ready, read=counted
                )
            )
        stack.pop_all()
    return receivers


def _counted(read: Read) -> Read:
    """The same for requests that do not hold more than can be read at once."""

    def read_counted(request: bytes) -> Decoded:
        check_count(request)
        return read(request)

    return read_counted


def closed(receivers: Sequence[Receiver]) -> None:
    """Take no more at any of them, whatever one of them raises."""
    with ExitStack() as stack:
        for receiver in receivers:
            stack.callback(receiver.stop)
