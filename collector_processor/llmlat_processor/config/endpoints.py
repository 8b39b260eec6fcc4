"""Addresses in a config file: what they are, and which of them are one place by their very names.

host:port                     a listener; a destination in the clear, or over TLS where it has `tls`
http://host:port/base         a destination in the clear
https://host/base             a destination over TLS
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import Final, NamedTuple

LOOPBACK: Final = "127.0.0.1"

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]@?#]*")
_PORTS: Final = {"http": 80, "https": 443}
_SAME: Final = ({"localhost", LOOPBACK}, {"localhost", "::1"})


class Endpoint(NamedTuple):
    """Where something is received, or sent to.

    Attributes:
        scheme: `http`, `https`, or empty where none is given.
        host: as it is given, with the brackets of an IPv6 address; never empty.
        port: 0 is any free one, of listeners only.
        base: path of a URL without the slash at its end; mostly empty.
    """

    scheme: str
    host: str
    port: int
    base: str

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if self.scheme else ""
        return f"{scheme}{self.host}:{self.port}{self.base}"


def listener(address: str) -> Endpoint:
    """Read `host:port`; no host is loopback.

    Raises:
        ValueError: it is none; the message goes on after the address.
    """
    if _SCHEME.match(address):
        raise ValueError(f"is a URL; to listen, write host:port, like {LOOPBACK}:4317")
    host, port = _host_and_port(address, None)
    return Endpoint("", host, port, "")


def destination(address: str) -> Endpoint:
    """Read `host:port` or a URL.

    Raises:
        ValueError: it is none; the message goes on after the address.
    """
    found = _SCHEME.fullmatch(address)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", address)
    if scheme not in {"", *_PORTS}:
        raise ValueError("is neither host:port nor a URL that begins with http:// or https://")
    netloc, slash, path = rest.partition("/")
    if "@" in netloc:
        raise ValueError("holds a user or a password; give those in headers, or as a token")
    if slash and not scheme:
        raise ValueError("has a path but no scheme; write http:// or https:// before it")
    if re.search(r"[?#\s]", path):
        raise ValueError("is more than a place and a path")
    host, port = _host_and_port(netloc, _PORTS.get(scheme))
    if not port:
        raise ValueError("has port 0, where nobody can be reached")
    base = f"/{path}".rstrip("/")
    return Endpoint(scheme, host, port, base)


def _host_and_port(netloc: str, usual: int | None) -> tuple[str, int]:
    host, colon, port = netloc.rpartition(":")
    if usual is not None and (not colon or netloc.endswith("]")):
        host, port = netloc, str(usual)
    if not (colon or usual) or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError(f"is not host:port, like {LOOPBACK}:4317")
    if ":" in host.strip("[]") and not host.startswith("["):
        raise ValueError("is an IPv6 address without brackets; write it like [::1]:4317")
    if not _HOST.fullmatch(host):
        raise ValueError(f"is not host:port, like {LOOPBACK}:4317")
    return host or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name."""
    bare = host.strip("[]").lower()
    with suppress(ValueError):
        return ipaddress.ip_address(bare).is_loopback
    return bare == "localhost" or bare.endswith(".localhost")


def are_one_place(listening: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints are the same by what is written; what names stand for is not asked."""
    if not listening.port or listening.port != other.port:
        return False
    here, there = _plain(listening.host), _plain(other.host)
    if _is_any(here):
        return is_loopback(there) or _is_any(there)
    return here == there or {here, there} in _SAME


def _plain(host: str) -> str:
    bare = host.strip("[]").lower()
    with suppress(ValueError):
        return str(ipaddress.ip_address(bare))
    return bare


def _is_any(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False
