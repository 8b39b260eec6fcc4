"""Headers and tokens of a destination: sent as they are, or refused without being told."""

from __future__ import annotations

import pytest

from llmlat_processor.edges.addresses import endpoint_of
from llmlat_processor.edges.client_headers import client_headers, compresses_to
from llmlat_processor.settings import Compression, Destination


def test_names_are_in_lower_case_and_the_token_is_one_of_them() -> None:
    destination = Destination("a:1", headers={"X-Scope-OrgID": " team "}, token="secret")

    assert client_headers(destination) == {
        "x-scope-orgid": "team",
        "authorization": "Bearer secret",
    }


WRONG = {
    "a space in a name": ({"x y": "secret"}, "", "'x y' is no name of a header"),
    "no name": ({"": "secret"}, "", "'' is no name"),
    "a binary header": ({"x-bin": "secret"}, "", "text, not binary"),
    "a second line": ({"x": "secret\r\nhost: other"}, "", "not printable ASCII"),
    "other letters": ({"x": "secret é"}, "", "header 'x' holds what is not printable"),
    "one of ours": ({"Content-Type": "secret"}, "", "set by the exporter"),
    "two logins": ({"Authorization": "secret"}, "secret", "leave one of them out"),
    "a token of lines": ({}, "secret\nsecret", "the token holds what is not printable"),
}


@pytest.mark.parametrize(("headers", "token", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_sent_is_refused_and_never_told(
    headers: dict[str, str], token: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        client_headers(Destination("a:1", headers=headers, token=token))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("endpoint", "asked", "compresses"),
    [
        ("127.0.0.1:1", Compression.AUTO, False),
        ("localhost:1", Compression.GZIP, True),
        ("tempo:1", Compression.AUTO, True),
        ("tempo:1", Compression.NONE, False),
    ],
)
def test_what_stays_on_this_machine_is_compressed_only_where_that_is_asked_for(
    endpoint: str, asked: Compression, compresses: bool
) -> None:
    destination = Destination(endpoint, compression=asked)

    assert compresses_to(destination, endpoint_of(destination)) is compresses
