"""The wire: for how long it holds bytes, and what it knows of them."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from tests.truth.marks import ASKED, FIRST, LAST, mark, marks_in, request_in
from tests.truth.scenarios import Wire
from tests.truth.wire import DelayingWire, Passage, Passages, until

MS = 1_000_000


@pytest.mark.parametrize(
    ("now_ms", "left_ms"),
    [(100, 20), (115, 5), (120, 0), (300, 0)],
    ids=["just read", "on their way", "due now", "held up behind others"],
)
def test_bytes_are_held_from_when_they_were_read(now_ms, left_ms):
    assert until(100 * MS, 20 * MS, lambda: now_ms * MS) == left_ms * MS


def test_marks_are_found_among_other_bytes():
    content = f"data: {mark(17, FIRST)} and {mark(4, LAST)}, ~no:mark~".encode()
    assert marks_in(content) == [(17, FIRST), (4, LAST)]
    assert request_in(content.decode()) == 17


def test_a_text_without_a_mark_has_no_request():
    with pytest.raises(ValueError, match="no mark"):
        request_in("hello")


def test_what_passed_is_known_by_its_mark():
    passages = Passages()
    assert not passages.note(b"POST / HTTP/1.1", Passage(1, 1, 2))
    assert passages.note(mark(3, ASKED).encode(), Passage(1, 5, 9))
    assert passages.by_mark() == {(3, ASKED): Passage(1, 5, 9)}


def test_bytes_pass_both_ways_unchanged_and_are_held_each_way():
    """Through real sockets: each way takes at least what the wire says, and a little more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        echo = Thread(target=_echo_once, args=(server,))
        echo.start()
        with DelayingWire("127.0.0.1", server.getsockname(), Wire(3, 5)) as wire:
            host, _, port = wire.url.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port))) as client:
                client.sendall(mark(1, ASKED).encode())
                answer = client.recv(100)
        echo.join()
    asked, last = wire.passages.by_mark()[1, ASKED], wire.passages.by_mark()[1, LAST]
    assert answer == mark(1, LAST).encode()
    assert asked.begun_ns == asked.read_ns <= asked.sent_ns - 3 * MS
    assert last.read_ns <= last.sent_ns - 5 * MS
    assert asked.sent_ns <= last.sent_ns


def _echo_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100)
        connection.sendall(mark(1, LAST).encode())
        connection.recv(100)
