"""Where to send to, as people write it."""

from __future__ import annotations

import pytest

from llmlat_processor.edges.addresses import endpoint_of
from llmlat_processor.settings import ClientTls, Destination, Protocol

GRPC, HTTP = Protocol.GRPC, Protocol.HTTP

FORMS = {
    "host and port": (":4319", GRPC, "http://127.0.0.1:4319"),
    "a URL": ("http://tempo:4317/", GRPC, "http://tempo:4317"),
    "capitals": ("HTTPS://Tempo.Example:4317", GRPC, "https://tempo.example:4317"),
    "a port of the scheme": ("https://api.example.org", GRPC, "https://api.example.org:443"),
    "in the clear too": ("http://api.example.org", HTTP, "http://api.example.org:80"),
    "a path": ("https://api.example.org/otlp/", HTTP, "https://api.example.org:443/otlp"),
    "brackets": ("[::1]:4317", GRPC, "http://[::1]:4317"),
    "brackets in a URL": ("http://[::1]:4318/v1/traces", HTTP, "http://[::1]:4318/v1/traces"),
}


@pytest.mark.parametrize(("given", "protocol", "url"), FORMS.values(), ids=FORMS)
def test_an_endpoint_may_be_written_in_many_ways(given: str, protocol: Protocol, url: str) -> None:
    assert endpoint_of(Destination(given, protocol)).url == url


def test_a_bare_address_is_secure_where_tls_is_set() -> None:
    assert endpoint_of(Destination("tempo:4317", tls=ClientTls())).is_secure
    assert not endpoint_of(Destination("tempo:4317")).is_secure


WRONG = {
    "no port": (Destination("tempo"), "is not an address like"),
    "no host": (Destination("https://:4317"), "is not an address like"),
    "port 0": (Destination("tempo:0"), "is not an address like"),
    "port 0 in a URL": (Destination("http://tempo:0"), "is not an address like"),
    "a port of letters": (Destination("http://tempo:grpc"), "like 127.0.0.1:4319"),
    "a path over gRPC": (Destination("http://tempo:4317/v1/traces"), "is not an address like"),
    "another scheme": (Destination("unix:///tmp/socket"), "is not an address like"),
    "another, over HTTP": (Destination("ftp://a:1", HTTP), "like http://127.0.0.1:4318"),
    "a query": (Destination("http://a:1/x?key=secret", HTTP), "'http://a:1/x' has a query"),
    "a password": (Destination("http://me:secret@a:1", HTTP), "give them as headers"),
    "TLS that is not asked for": (Destination("http://a:1", tls=ClientTls()), "write https://"),
}


@pytest.mark.parametrize(("destination", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_endpoint_is_refused_and_no_secret_is_told(
    destination: Destination, words: str
) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        endpoint_of(destination)
    assert "secret" not in str(raised.value)
