"""Addresses as they are given on a command line, and whether two of them are one place."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import Final

LOOPBACK: Final = "127.0.0.1"

_PLAIN: Final = "http://"
_SECURE: Final = "https://"


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


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name."""
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost" or bare.endswith(".localhost")


def destination_of(endpoint: str) -> str:
    """Read where to send to: `host:port`, or the URL that OTLP endpoints are often given as.

    Raises:
        ValueError: it is no such thing, or asks for what is not there yet.
    """
    if endpoint.lower().startswith(_SECURE):
        raise ValueError(f"{endpoint!r} asks for TLS, which is not supported yet")
    host, port = host_and_port(endpoint.removeprefix(_PLAIN).rstrip("/"))
    if not port or "/" in host:
        raise ValueError(f"{endpoint!r} is not an address like {LOOPBACK}:4319")
    return f"{host}:{port}"


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
