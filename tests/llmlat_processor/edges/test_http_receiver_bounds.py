"""What is let in over HTTP: how much at a time, and of whom."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from threading import Event

import httpx
import pytest

from llmlat_processor.edges.receiver import (
    TOO_LARGE,
    UNAUTHORIZED,
)
from llmlat_processor.settings import Listener
from tests.llmlat_processor.http_receiving import (
    ONE,
    PROTOBUF,
    TRACES,
    post,
    receiving,
    status_of,
)
from tests.llmlat_processor.receiving import MIB, Taken, certificates, connected, rest

BOMB = gzip.compress(bytes(256 * MIB), 9)
"""A quarter of a megabyte that is a thousand times as much."""


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (bytes(MIB + 1), "identity"),
        (BOMB, "gzip"),
        (gzip.compress(bytes(MIB)) * 2, "gzip"),
        (zlib.compress(bytes(2 * MIB)), "deflate"),
    ],
    ids=["plain", "gzip a thousand to one", "gzip in two parts", "deflate"],
)
def test_a_request_above_the_limit_is_refused_for_good(content: bytes, encoding: str) -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        answer = post(receiver, content, content_encoding=encoding)
        counts = receiver.counts

    assert answer.status_code == 413
    assert "retry-after" not in answer.headers
    assert f"larger than {MIB} bytes" in status_of(answer).message
    assert counts == {TOO_LARGE: 1}
    assert not taken


def test_a_request_of_exactly_the_limit_is_read() -> None:
    packed = gzip.compress(ONE)
    taken = Taken()

    with receiving(taken, max_message_bytes=len(ONE)) as receiver:
        answers = [post(receiver, ONE), post(receiver, packed, content_encoding="gzip")]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert taken.numbers == [1, 1]


def test_a_body_in_pieces_is_read_and_bounded() -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        read = post(receiver, (ONE[at : at + 7] for at in range(0, len(ONE), 7)))
        endless = post(receiver, (bytes(1 << 16) for _ in range(20)))

    assert (read.status_code, endless.status_code) == (200, 413)
    assert taken.numbers == [1]


def test_what_is_too_large_by_its_own_account_is_refused_before_it_comes() -> None:
    head = (
        f"POST {TRACES} HTTP/1.1\r\ncontent-type: {PROTOBUF}\r\nexpect: 100-continue\r\n"
        f"content-length: {MIB + 1}\r\nconnection: close\r\n\r\n"
    )

    with receiving(Taken()) as receiver, connected(receiver.address) as connection:
        connection.sendall(head.encode())
        answer = rest(connection)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_too_much_at_once_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of the largest are on their way already."""
    entered, leave = Event(), Event()
    begun: list[int] = []

    def take(_: object) -> str:
        begun.append(1)
        if len(begun) == 4:
            entered.set()
        leave.wait(10)
        return ""

    head = f"POST {TRACES} HTTP/1.1\r\ncontent-type: {PROTOBUF}\r\ncontent-length: {len(ONE)}\r\n"
    with receiving(take, max_message_bytes=len(ONE)) as receiver:
        waiting = [connected(receiver.address) for _ in range(4)]
        for connection in waiting:
            connection.sendall(f"{head}connection: close\r\n\r\n".encode() + ONE)
        assert entered.wait(10)
        answer = post(receiver, ONE)
        leave.set()
        answers = [rest(connection) for connection in waiting]
        again = post(receiver, ONE)
        for connection in waiting:
            connection.close()

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert all(text.startswith(b"HTTP/1.1 200 ") for text in answers)
    assert again.status_code == 200


@pytest.mark.parametrize("shown", ["", "Bearer other", "Basic secret", "secret", "Bearer s\u00e9"])
def test_who_shows_no_token_is_told_so(shown: str) -> None:
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", token="secret")) as receiver:
        headers = {"content-type": PROTOBUF, "authorization": shown.encode("latin-1")}
        url = f"http://{receiver.address}{TRACES}"
        answer = httpx.post(url, content=ONE, headers=headers)  # type: ignore[arg-type]
        counts = receiver.counts

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert not taken
    assert counts == {UNAUTHORIZED: 1}


@pytest.mark.parametrize("shown", ["Bearer secret", "bearer secret"])
def test_who_shows_the_token_is_let_in(shown: str) -> None:
    with receiving(Taken(), Listener("127.0.0.1:0", token="secret")) as receiver:
        assert post(receiver, ONE, authorization=shown).status_code == 200


def test_tls_is_spoken_with_who_believes_the_certificate(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", made.tls)) as receiver:
        with httpx.Client(verify=made.context(as_client=False)) as client:
            url = f"https://{receiver.address}{TRACES}"
            answer = client.post(url, content=ONE, headers={"content-type": PROTOBUF})
        with pytest.raises(httpx.TransportError):
            post(receiver, ONE)

    assert answer.status_code == 200
    assert taken.numbers == [1]


def test_with_authorities_for_clients_only_their_certificates_are_let_in(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", made.mutual)) as receiver:
        url = f"https://{receiver.address}{TRACES}"
        with (
            httpx.Client(verify=made.context(as_client=False)) as nobody,
            pytest.raises(httpx.TransportError),
        ):
            nobody.post(url, content=ONE, headers={"content-type": PROTOBUF})
        with httpx.Client(verify=made.context(as_client=True)) as client:
            answer = client.post(url, content=ONE, headers={"content-type": PROTOBUF})

    assert answer.status_code == 200
    assert taken.numbers == [1]
