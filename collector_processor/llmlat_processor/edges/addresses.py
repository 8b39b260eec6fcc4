"""Addresses as they are given to listen on or to send to, and whether two of them are one place."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from llmlat_processor.config.endpoints import LOOPBACK
from llmlat_processor.settings import Destination, Protocol

_PLAIN: Final = "http://"
_SECURE: Final = "https://"
_PORTS: Final = {"http": 80, "https": 443}
_EXAMPLE: Final = {Protocol.GRPC: f"{LOOPBACK}:4319", Protocol.HTTP: f"http://{LOOPBACK}:4318"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to send to.

    Attributes:
        host: name or address; one of many colons in brackets.
        port: from 1 on.
        is_secure: whether to speak TLS.
        path: of the URL, without a slash at its end; empty where there is none.
    """

    host: str
    port: int
    is_secure: bool
    path: str

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """With scheme and path."""
        return f"{_SECURE if self.is_secure else _PLAIN}{self.address}{self.path}"


def host_and_port(address: str) -> tuple[str, int]:
    """Read `host:port`; no host is loopback.

    Raises:
        ValueError: it is no such thing.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not port.isascii() or int(port) > 65_535:
        raise ValueError(f"{address!r} is not an address like {LOOPBACK}:4317")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{address!r} is not an address like [::1]:4317, with brackets")
    return host or LOOPBACK, int(port)


def endpoint_of(destination: Destination) -> Endpoint:
    """Read where to send to: `host:port`, or the URL that OTLP endpoints are often given as.

    A URL without a port means that of its scheme, 443 or 80. Only OTLP over HTTP has a path.

    Raises:
        ValueError: it is no such thing; the message says what to do.
    """
    given = destination.endpoint
    if "@" in given:  # said without what it is: there is a password in it
        raise ValueError("the endpoint of a destination holds credentials: give them as headers")
    example = _EXAMPLE[destination.protocol]
    wrong = ValueError(f"{given!r} is not an address like {example}")
    if "://" not in given:
        host, port = host_and_port(given.rstrip("/"))
        if not port or "/" in host:
            raise wrong
        return Endpoint(host, port, destination.tls is not None, "")
    endpoint = _of_url(urlsplit(given), given)
    if endpoint is None or (endpoint.path and destination.protocol is Protocol.GRPC):
        raise wrong
    if destination.tls is not None and not endpoint.is_secure:
        raise ValueError(f"{given!r} asks for no TLS, but TLS is set: write {_SECURE}...")
    return endpoint


def _of_url(url: SplitResult, given: str) -> Endpoint | None:
    try:
        port = _PORTS.get(url.scheme) if url.port is None else url.port
    except ValueError:  # a port of letters, or too large a number
        return None
    if not port or not url.hostname or url.scheme not in _PORTS:
        return None
    if url.query or url.fragment:
        raise ValueError(f"{given.partition('?')[0]!r} has a query or a fragment: leave them out")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return Endpoint(host, port, url.scheme == "https", url.path.rstrip("/"))


def are_one_place(listen: str, destination: str) -> bool:
    """Whether what is sent to the destination would arrive at who listens.

    Raises:
        ValueError: one of them is no address.
    """
    (host, port), (other, other_port) = host_and_port(listen), host_and_port(destination)
    if port != other_port:
        return False
    here, there = _resolved(host), _resolved(other)
    any_here = any(_is_any(address) for address in here)
    return host == other or not here.isdisjoint(there) or (any_here and _is_local(there))


def _resolved(host: str) -> set[str]:
    with suppress(OSError):
        return {str(found[4][0]) for found in socket.getaddrinfo(host.strip("[]"), None)}
    return set()


def _is_any(address: str) -> bool:
    return address in {"0.0.0.0", "::"}


def _is_local(addresses: set[str]) -> bool:
    return any(address.startswith("127.") or address == "::1" for address in addresses)
