"""What goes together in a config file, and what cannot: problems that no single value has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmlat_processor.config.endpoints import Endpoint, are_one_place, is_loopback
from llmlat_processor.config.problems import Keys, dotted
from llmlat_processor.config.schema import (
    GRPC_ADDRESS,
    ClientTlsBlock,
    Configuration,
    DestinationBlock,
    ListenerBlock,
    ServerTlsBlock,
)
from llmlat_processor.config.units import duration_text, size_text
from llmlat_processor.settings import Mode, Protocol

FaultOf = Callable[[Path], str]
"""Why a file cannot be read; empty where it can."""

AUTHORIZATION: Final = "authorization"

_SPANS: Final = ("destinations", "spans")
_DERIVED: Final = ("destinations", "derived")
_MODE: Final = ("mode",)


@dataclass(frozen=True, slots=True)
class Clash:
    """Something that does not go together.

    Attributes:
        path: keys that lead to one side of it.
        words: what it is, and what to do.
        other: keys that lead to the other side, if it has two: where those are broken, nothing
            can be said.
        is_fatal: False where it works, and somebody should know.
        is_missing: nothing stands there, and should.
    """

    path: Keys
    words: str
    other: Keys | None = None
    is_fatal: bool = True
    is_missing: bool = False


Clashes = Iterator[Clash]


def clashes(configuration: Configuration, fault_of: FaultOf) -> Clashes:
    """Everything that does not go together.

    Args:
        configuration: a file whose single values are right.
        fault_of: tells of the files that it names.
    """
    yield from _of_mode(configuration)
    yield from _of_receivers(configuration)
    for path, block in destinations(configuration):
        yield from _of_destination(path, block)
        yield from _circle(path, block, configuration)
    for path, listener in listeners(configuration):
        yield from _of_listener(path, listener)
    yield from _of_limits(configuration)
    yield from _of_files(configuration, fault_of)


def destinations(configuration: Configuration) -> Iterator[tuple[Keys, DestinationBlock]]:
    """The destinations that there are, with their places in the file."""
    there = configuration.destinations
    named = (("spans", there.spans), ("derived", there.derived), ("metrics", there.metrics))
    return ((("destinations", name), block) for name, block in named if block is not None)


def listeners(configuration: Configuration) -> Iterator[tuple[Keys, ListenerBlock]]:
    """The listeners that are spoken of, with their places in the file."""
    there = configuration.receivers
    if there.grpc is not None:
        yield ("receivers", "grpc"), there.grpc
    if there.http is not None:
        yield ("receivers", "http"), there.http
    if configuration.telemetry is not None:
        yield ("telemetry",), configuration.telemetry


def has_journal(configuration: Configuration) -> bool:
    """Whether a journal is kept."""
    enabled = configuration.journal.enabled
    return configuration.mode is Mode.INLINE if enabled is None else enabled


def _of_mode(configuration: Configuration) -> Clashes:
    there = configuration.destinations
    if configuration.mode is Mode.INLINE:
        if there.spans is None:
            words = "is missing; inline sends spans on, so say where to, or set mode: tap"
            yield Clash(_SPANS, words, _MODE, is_missing=True)
        return
    if there.spans is not None:
        words = "a tap sends no spans on; leave it out, or set mode: inline"
        yield Clash(_SPANS, words, _MODE)
    if there.derived is None:
        words = "is missing; a tap sends lanes somewhere, so say where to"
        yield Clash(_DERIVED, words, _MODE, is_missing=True)
    if configuration.journal.enabled:
        words = "a tap keeps no journal, since the spans are safe elsewhere; leave it out"
        yield Clash(("journal", "enabled"), words, _MODE)


def _of_receivers(configuration: Configuration) -> Clashes:
    there = configuration.receivers
    is_named = there.has("grpc") or there.has("http")
    if is_named and there.grpc is None and there.http is None:
        words = "nothing would be received; write grpc: {} or http: {} for their usual addresses"
        yield Clash(("receivers",), words, is_missing=True)
    taken: list[tuple[Keys, Endpoint]] = []
    for path, place in _places(configuration):
        for other, there_too in taken:
            if are_one_place(place, there_too) or are_one_place(there_too, place):
                words = f"{dotted(other)} listens there too; choose another port"
                yield Clash((*path, "endpoint"), words, (*other, "endpoint"))
        taken.append((path, place))


def _places(configuration: Configuration) -> Iterator[tuple[Keys, Endpoint]]:
    """Where it listens, the usual place for gRPC included if no other is named."""
    there, telemetry = configuration.receivers, configuration.telemetry
    if there.grpc is not None:
        yield ("receivers", "grpc"), there.grpc.endpoint
    elif not (there.has("grpc") or there.has("http")):
        host, _, port = GRPC_ADDRESS.rpartition(":")
        yield ("receivers", "grpc"), Endpoint("", host, int(port), "")
    if there.http is not None:
        yield ("receivers", "http"), there.http.endpoint
    if telemetry is not None:
        yield ("telemetry",), telemetry.endpoint


def _circle(path: Keys, block: DestinationBlock, configuration: Configuration) -> Clashes:
    if block.endpoint is None:
        return
    for other, place in _places(configuration):
        if are_one_place(place, block.endpoint):
            words = (
                f"{block.endpoint} is where {dotted(other)} listens, so that spans would go round "
                "in a circle; send to another address"
            )
            yield Clash((*path, "endpoint"), words, (*other, "endpoint"))


def _of_destination(path: Keys, block: DestinationBlock) -> Clashes:
    place = block.endpoint
    at = (*path, "endpoint")
    if place is None:
        words = "is missing; write host:port or a URL, or set OTEL_EXPORTER_OTLP_ENDPOINT"
        yield Clash(at, words, is_missing=True)
    elif place.base and block.protocol is Protocol.GRPC:
        words = "has a path, and gRPC has none; leave it out, or set protocol: http"
        yield Clash(at, words, (*path, "protocol"))
    if place is not None and place.scheme == "http" and block.tls is not None:
        words = "is for TLS, and the endpoint is http://; write https://, or leave it out"
        yield Clash((*path, "tls"), words, at)
    if block.token and AUTHORIZATION in block.headers:
        words = "headers hold an authorization as well; leave one of them"
        yield Clash((*path, "token"), words, (*path, "headers"))
    if block.max_request_size > block.sending_queue.size:
        words = (
            f"{size_text(block.max_request_size)} do not fit into the sending queue of "
            f"{size_text(block.sending_queue.size)}; make sending_queue.size larger"
        )
        yield Clash((*path, "max_request_size"), words, (*path, "sending_queue", "size"))
    if block.retry.initial_interval > block.retry.max_interval:
        words = f"is longer than max_interval, {duration_text(block.retry.max_interval)}"
        yield Clash((*path, "retry", "initial_interval"), words, (*path, "retry", "max_interval"))
    is_plain = place is not None and place.scheme != "https" and block.tls is None
    is_secret = bool(block.token) or AUTHORIZATION in block.headers
    if is_plain and is_secret and place is not None and not is_loopback(place.host):
        words = f"goes to {place.host} in the clear; write https://, or give it tls"
        yield Clash((*path, "token" if block.token else "headers"), words, at, is_fatal=False)


def _of_listener(path: Keys, block: ListenerBlock) -> Clashes:
    host = block.endpoint.host
    if block.token and block.tls is None and not is_loopback(host):
        words = f"comes in the clear to {host}; give it tls"
        yield Clash((*path, "token"), words, (*path, "endpoint"), is_fatal=False)


def _of_limits(configuration: Configuration) -> Clashes:
    window = configuration.window
    if window.idle > window.hold_max:
        words = (
            f"{duration_text(window.idle)} are longer than hold_max, "
            f"{duration_text(window.hold_max)}: no trace would ever be whole"
        )
        yield Clash(("window", "idle"), words, ("window", "hold_max"))
    largest = configuration.receivers.max_message_size
    if has_journal(configuration) and configuration.journal.max_size < largest:
        words = (
            f"{size_text(configuration.journal.max_size)} have no room for one request of "
            f"receivers.max_message_size, {size_text(largest)}"
        )
        yield Clash(("journal", "max_size"), words, ("receivers", "max_message_size"))


def _of_files(configuration: Configuration, fault_of: FaultOf) -> Clashes:
    for path, destination in destinations(configuration):
        if destination.tls is not None:
            yield from _of_tls((*path, "tls"), destination.tls, fault_of)
    for path, listener in listeners(configuration):
        if listener.tls is not None:
            yield from _of_tls((*path, "tls"), listener.tls, fault_of)


def _of_tls(path: Keys, block: ClientTlsBlock | ServerTlsBlock, fault_of: FaultOf) -> Clashes:
    has_certificate, has_key = block.cert_file is not None, block.key_file is not None
    is_listener = isinstance(block, ServerTlsBlock)
    for key, is_there, other, needs in (
        ("cert_file", has_certificate, "key_file", is_listener or has_key),
        ("key_file", has_key, "cert_file", is_listener or has_certificate),
    ):
        if needs and not is_there:
            words = f"is missing; {'a listener' if is_listener else other} needs it"
            yield Clash((*path, key), words, is_missing=True)
    for key in type(block).model_fields:
        file = getattr(block, key)
        fault = fault_of(file) if isinstance(file, Path) else ""
        if fault:
            yield Clash((*path, key), f"{file}: {fault}; name a file in PEM that can be read")
