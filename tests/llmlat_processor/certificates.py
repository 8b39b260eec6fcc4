"""Certificates of an authority of our own, in files, and servers that show them."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import trustme

from llmlat_processor.settings import ClientTls


class Certificates:
    """One authority; a server of it on loopback, and a client."""

    def __init__(self, folder: Path) -> None:
        """Write the files.

        Args:
            folder: an empty one.
        """
        self._authority = trustme.CA()
        self._server = self._authority.issue_cert("127.0.0.1", "localhost")
        client = self._authority.issue_cert("client.example")
        self.authorities = folder / "authorities.pem"
        self.certificate = folder / "client.pem"
        self.key = folder / "client.key"
        self._authority.cert_pem.write_to_path(f"{self.authorities}")
        client.cert_chain_pems[0].write_to_path(f"{self.certificate}")
        client.private_key_pem.write_to_path(f"{self.key}")
        self.believing = ClientTls(self.authorities)
        self.known = ClientTls(self.authorities, self.certificate, self.key)

    def for_grpc(self, *, asks: bool = False) -> grpc.ServerCredentials:
        """A server of gRPC, that may ask for the certificates of its clients."""
        chain = b"".join(pem.bytes() for pem in self._server.cert_chain_pems)
        pair = (self._server.private_key_pem.bytes(), chain)
        roots = self._authority.cert_pem.bytes() if asks else None
        return grpc.ssl_server_credentials([pair], roots, require_client_auth=asks)

    def for_http(self, *, asks: bool = False) -> ssl.SSLContext:
        """The same over HTTP."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server.configure_cert(context)
        if asks:
            self._authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
