"""TLS of a sender, for HTTP and for gRPC: whom it believes, and who it is."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import grpc  # type: ignore[import-untyped]

from llmlat_processor.settings import ClientTls

SYSTEM: Final = ClientTls()
"""Whom the system trusts, and nobody in particular."""

_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def context_of(tls: ClientTls) -> ssl.SSLContext:
    """What OpenSSL needs.

    Raises:
        ValueError: a file cannot be used; the message names it.
    """
    try:
        context = ssl.create_default_context(cafile=tls.authorities)
    except OSError as error:  # SSLError is one
        raise _unusable("the authorities", tls.authorities, error) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # some systems leave it to their own policy
    if (tls.certificate is None) is not (tls.key is None):
        raise ValueError("TLS needs a certificate and its key, or neither of them")
    if tls.certificate is not None:
        try:
            context.load_cert_chain(tls.certificate, tls.key, password=_nobody_is_asked)
        except OSError as error:
            files = f"{tls.certificate} with the key {tls.key}"
            raise _unusable("the certificate", files, error) from error
    return context


def credentials_of(tls: ClientTls) -> grpc.ChannelCredentials:
    """What gRPC needs, which reads no file and says nothing of what it cannot use.

    Raises:
        ValueError: as for `context_of`.
    """
    context_of(tls)
    return grpc.ssl_channel_credentials(
        root_certificates=_content(tls.authorities) or _system_authorities(),
        private_key=_content(tls.key),
        certificate_chain=_content(tls.certificate),
    )


def _content(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()


def _system_authorities() -> bytes | None:
    """Those of this machine; gRPC would take a list of its own, without those of a company."""
    found = ssl.get_default_verify_paths().cafile
    for bundle in map(Path, (found, *_BUNDLES) if found else _BUNDLES):
        if bundle.is_file():
            return bundle.read_bytes()
    return None


def _nobody_is_asked() -> str:
    """In place of a question at the terminal: a key under a password cannot be used."""
    return ""


def _unusable(what: str, where: object, error: OSError) -> ValueError:
    why = error.strerror or str(error)
    return ValueError(f"{what} {where} cannot be used ({why}): it must be readable, and PEM")
