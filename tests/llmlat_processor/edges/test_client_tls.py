"""TLS to a destination, over both protocols: believed, known, refused, and files that are none."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from llmlat_processor.edges.client_tls import context_of, credentials_of
from llmlat_processor.edges.grpc_sender import GrpcSender
from llmlat_processor.edges.http_sender import HttpSender
from llmlat_processor.edges.sending import NotNow, Outcome, Signal, Taken
from llmlat_processor.settings import ClientTls, Destination, Protocol
from tests.llmlat_processor.certificates import Certificates
from tests.llmlat_processor.http_sink import http_sink
from tests.llmlat_processor.sink import WAIT_S, sink

BOTH = pytest.mark.parametrize("protocol", Protocol, ids=lambda protocol: protocol.value)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def listening(
    protocol: Protocol, certificates: Certificates, *, asks: bool = False
) -> Iterator[str]:
    """The address of a destination that speaks TLS."""
    if protocol is Protocol.GRPC:
        with sink(credentials=certificates.for_grpc(asks=asks)) as server:
            yield server.address
    else:
        with http_sink(context=certificates.for_http(asks=asks)) as secure:
            yield secure.address


def sent(protocol: Protocol, endpoint: str, tls: ClientTls | None) -> Outcome:
    destination = Destination(endpoint, protocol, tls)
    kind = GrpcSender if protocol is Protocol.GRPC else HttpSender
    sender = kind(destination, Signal.TRACES)
    try:
        return sender.send(b"", WAIT_S)
    finally:
        sender.close()


@BOTH
def test_who_is_signed_by_an_authority_that_is_believed_gets_the_spans(
    protocol: Protocol, certificates: Certificates
) -> None:
    with listening(protocol, certificates) as address:
        assert sent(protocol, address, certificates.believing) == Taken()
        assert sent(protocol, f"https://{address}", certificates.believing) == Taken()


@BOTH
def test_nobody_else_gets_them(protocol: Protocol, certificates: Certificates) -> None:
    with listening(protocol, certificates) as address:
        outcome = sent(protocol, f"https://{address}", None)

    assert isinstance(outcome, NotNow)
    assert "is it the one whose authorities are set?" in outcome.words


@BOTH
def test_a_destination_may_ask_who_we_are(protocol: Protocol, certificates: Certificates) -> None:
    with listening(protocol, certificates, asks=True) as address:
        assert sent(protocol, address, certificates.known) == Taken()
        assert isinstance(sent(protocol, address, certificates.believing), NotNow)


def test_authorities_of_the_system_may_be_told_by_the_environment(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for every program with OpenSSL; gRPC alone would take its own list."""
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificates.authorities}")
    for protocol in Protocol:
        with listening(protocol, certificates) as address:
            assert sent(protocol, f"https://{address}", None) == Taken()


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    nothing, words = tmp_path / "nothing.pem", tmp_path / "words.pem"
    words.write_text("no certificate")
    wrong = {
        f"the authorities {nothing} cannot be used": ClientTls(nothing),
        f"the authorities {words} cannot be used": ClientTls(words),
        f"the certificate {words} with the key {words}": ClientTls(None, words, words),
        f"the certificate {nothing} with": ClientTls(None, nothing, certificates.key),
        "a certificate and its key, or neither": ClientTls(None, certificates.certificate),
        "a certificate and its key, or neither of": ClientTls(None, None, certificates.key),
    }
    for said, tls in wrong.items():
        for use in (context_of, credentials_of):
            with pytest.raises(ValueError, match=said):
                use(tls)


def test_nobody_is_asked_for_the_password_of_a_key(
    certificates: Certificates, tmp_path: Path
) -> None:
    locked = tmp_path / "locked.key"
    password = BestAvailableEncryption(b"secret")
    key = generate_private_key(SECP256R1())
    locked.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password))
    with pytest.raises(ValueError, match="cannot be used"):
        context_of(ClientTls(None, certificates.certificate, locked))


def test_only_versions_of_tls_that_are_safe_are_spoken(certificates: Certificates) -> None:
    assert context_of(certificates.known).minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context_of(certificates.known).check_hostname
