"""Addresses that are listened on: had at once, or refused with what to do about it."""

from __future__ import annotations

import errno
import resource
import socket
from typing import Final

BACKLOG: Final = 1024
"""Connections that the system keeps until they are let in."""

_ANY: Final = "::"


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; `::` is every address of this machine, also those of IPv4.

    Raises:
        OSError: the address cannot be had; the message says what to do.
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    both = bare == _ANY and socket.has_dualstack_ipv6()
    try:
        socket.getaddrinfo(bare, port, family)
        return socket.create_server(
            (bare, port), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except socket.gaierror as error:
        why = f"cannot listen on {host}:{port}: {error.strerror}; {host} is no name of this machine"
        raise OSError(error.errno, why) from error
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot listen on {host}:{port}: {error.strerror}; {_way_out(host, error)}",
        ) from error


def _way_out(host: str, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "ports below 1024 are for root; choose another one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine"
    return (
        "stop what listens there (a collector, another llmlat?) or choose another port, such as "
        f"{host}:0 for a free one"
    )


def most_connections(wanted: int, share: float) -> int:
    """How many a server lets in: no more than its share of the files that may be open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, int(files * share)))
