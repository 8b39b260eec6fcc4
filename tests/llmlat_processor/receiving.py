"""Receivers on loopback, for tests: what they take, raw connections to them, certificates."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from llmlat_processor.settings import ServerTls
from llmlat_processor.wire import Decoded

MIB = 1 << 20


class Taken(list[Decoded]):
    """Takes all, and remembers it."""

    def __call__(self, decoded: Decoded) -> str:
        self.append(decoded)
        return ""

    @property
    def numbers(self) -> list[int]:
        """The spans, by the number that they were made with."""
        return [span.span_id[-1] for decoded in self for span in decoded.spans]


@dataclass(frozen=True)
class Certificates:
    """An authority, what a server needs of it, and what a client does.

    Attributes:
        tls: of a server that asks clients for nothing.
        mutual: of one that asks for certificates of the same authority.
        authority: whom clients have to believe.
        certificate: of a client.
        key: the private key of that.
    """

    tls: ServerTls
    mutual: ServerTls
    authority: Path
    certificate: Path
    key: Path

    def context(self, *, as_client: bool) -> ssl.SSLContext:
        """TLS of a client."""
        context = ssl.create_default_context(cafile=self.authority)
        if as_client:
            context.load_cert_chain(self.certificate, self.key)
        return context


def certificates(folder: Path) -> Certificates:
    """Made anew, in files."""
    authority = trustme.CA()
    paths = {}
    for who, issued in {
        "server": authority.issue_cert("127.0.0.1", "localhost"),
        "client": authority.issue_cert("client.invalid"),
    }.items():
        paths[who] = folder / f"{who}.pem", folder / f"{who}.key"
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        paths[who][0].write_bytes(chain)
        paths[who][1].write_bytes(issued.private_key_pem.bytes())
    believed = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(believed))
    return Certificates(
        ServerTls(*paths["server"]),
        ServerTls(*paths["server"], believed),
        believed,
        *paths["client"],
    )


def connected(address: str) -> socket.socket:
    """A connection that has said nothing yet."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def rest(connection: socket.socket) -> bytes:
    """All that still comes, to the end of the connection."""
    pieces = []
    try:
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


@contextmanager
def many_files() -> Iterator[None]:
    """As many may be open as this user may have: each connection is two, one at each end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def idle_connections(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Many connections that say nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(address)) for _ in range(count)]
