"""Certificates and keys that a server is given, and what it says of those that are of no use."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from llmlat_processor.edges.server_tls import tls_context, tls_credentials
from llmlat_processor.settings import ServerTls
from tests.llmlat_processor.receiving import Certificates, certificates

BOTH = pytest.mark.parametrize("serve", [tls_context, tls_credentials])
Serve = Callable[[ServerTls], object]


@pytest.fixture
def made(tmp_path: Path) -> Certificates:
    return certificates(tmp_path)


def refused(serve: Serve, tls: ServerTls) -> str:
    with pytest.raises(OSError, match="PEM") as raised:
        serve(tls)
    return str(raised.value)


def test_it_is_no_older_than_1_2_and_asks_clients_only_where_it_is_told_whom_to_believe(
    made: Certificates,
) -> None:
    assert tls_context(made.tls).minimum_version >= ssl.TLSVersion.TLSv1_2
    assert tls_context(made.tls).verify_mode is ssl.CERT_NONE
    assert tls_context(made.mutual).verify_mode is ssl.CERT_REQUIRED


@BOTH
def test_a_file_that_is_not_there_is_named(serve: Serve, made: Certificates) -> None:
    missing = made.key.parent / "missing.pem"

    for tls in (
        ServerTls(missing, made.tls.key),
        ServerTls(made.tls.certificate, missing),
        ServerTls(made.tls.certificate, made.tls.key, missing),
    ):
        assert f"cannot read {missing} for TLS: No such file or directory" in refused(serve, tls)


@BOTH
def test_a_key_of_another_certificate_is_told(serve: Serve, made: Certificates) -> None:
    told = refused(serve, ServerTls(made.tls.certificate, made.key))

    assert f"the certificate {made.tls.certificate} and the key {made.key}" in told
    assert "(key values mismatch)" in told


@BOTH
@pytest.mark.parametrize("which", ["certificate", "key", "client_authorities"])
def test_what_is_not_pem_is_told(serve: Serve, made: Certificates, which: str) -> None:
    tls = made.mutual
    broken: Path = getattr(tls, which)
    broken.write_bytes(b"nonsense")

    assert str(broken) in refused(serve, tls)


@BOTH
def test_nobody_is_asked_for_the_password_of_a_key(serve: Serve, made: Certificates) -> None:
    key = serialization.load_pem_private_key(made.tls.key.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    made.tls.key.write_bytes(encrypted)

    assert "the key unencrypted" in refused(serve, made.tls)
