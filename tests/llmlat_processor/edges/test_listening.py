"""Addresses that cannot be listened on: each is refused with what to do about it."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from llmlat_processor.edges.listening import listening_socket

WAYS_OUT = {
    errno.EADDRINUSE: "stop what listens there",
    errno.EACCES: "ports below 1024 are for root",
    errno.EADDRNOTAVAIL: "192.0.2.1 is no address of this machine",
}


@pytest.mark.parametrize(("number", "words"), WAYS_OUT.items(), ids=errno.errorcode.get)
def test_what_stands_in_the_way_is_told_with_a_way_out(
    number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **_how: Any) -> socket.socket:
        raise OSError(number, "no")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(OSError, match=f"^.*cannot listen on 192.0.2.1:80: no; {words}"):
        listening_socket("192.0.2.1", 80)
