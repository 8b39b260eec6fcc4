"""Who a server is: certificates and keys as they are read from files, checked before they serve."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import grpc  # type: ignore[import-untyped]

from llmlat_processor.settings import ServerTls

_ALPN: Final = ("http/1.1",)


def tls_context(tls: ServerTls) -> ssl.SSLContext:
    """TLS of an HTTP server.

    Raises:
        OSError: a file cannot be used; the message names it and says what to do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # some systems leave it to their own policy
    context.set_alpn_protocols(_ALPN)
    for path in filter(None, (tls.certificate, tls.key, tls.client_authorities)):
        _read(path)  # OpenSSL's own error names no file
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except ssl.SSLError as error:
        raise OSError(
            f"cannot serve TLS with the certificate {tls.certificate} and the key {tls.key} "
            f"({_reason(error)}): both must be PEM, the key unencrypted and the one of that "
            "certificate"
        ) from error
    if tls.client_authorities:
        try:
            context.load_verify_locations(tls.client_authorities)
        except ssl.SSLError as error:
            raise OSError(
                f"cannot check clients with {tls.client_authorities} ({_reason(error)}): it must "
                "hold the certificates in PEM of who signs those of clients"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def tls_credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """The same for gRPC.

    Raises:
        OSError: a file cannot be used; the message names it and says what to do.
    """
    tls_context(tls)  # gRPC's own errors come late, and name no file
    authorities = tls.client_authorities
    return grpc.ssl_server_credentials(
        [(_read(tls.key), _read(tls.certificate))],
        root_certificates=_read(authorities) if authorities else None,
        require_client_auth=authorities is not None,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot read {path} for TLS: {error.strerror}; it must be a PEM file that this user "
            "may read",
        ) from error


def _no_password() -> str:
    """OpenSSL would ask for one on the terminal, where nobody sits."""
    return ""


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not PEM").replace("_", " ").lower()
