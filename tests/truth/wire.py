"""A wire between two hosts: TCP, whose bytes are held for a while, and how long that really was."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, NamedTuple

from tests.truth.marks import marks_in
from tests.truth.scenarios import Wire

_CHUNK: Final = 1 << 16
_END: Final = b""

Mark = tuple[int, str]


class Passage(NamedTuple):
    """How bytes with a mark passed, on the machine's monotonic clock.

    Attributes:
        begun_ns: when the first bytes were read that came after those with the mark before.
        read_ns: when they were read themselves.
        sent_ns: when they had been sent on.
    """

    begun_ns: int
    read_ns: int
    sent_ns: int


class Passages:
    """When the bytes with each mark passed."""

    def __init__(self) -> None:
        self._passed: dict[Mark, Passage] = {}
        self._lock = Lock()

    def note(self, content: bytes, passage: Passage) -> bool:
        """These bytes passed so; whether there was a mark in them."""
        marks = marks_in(content)
        with self._lock:
            self._passed.update(dict.fromkeys(marks, passage))
        return bool(marks)

    def by_mark(self) -> Mapping[Mark, Passage]:
        """What is known so far."""
        with self._lock:
            return dict(self._passed)


class DelayingWire:
    """Listens, and passes bytes on to a server; each connection is two threads each way.

    Bytes are sent on when they have been held for as long as the wire says, in the order in which
    they came: what follows close behind is not held any longer for that.
    """

    def __init__(self, listen: str, server: tuple[str, int], wire: Wire) -> None:
        """Listen on a free port of that address."""
        self._server = server
        self._wire = wire
        self._listening = socket.create_server((listen, 0))
        self.url = f"http://{listen}:{self._listening.getsockname()[1]}"
        self.passages = Passages()
        self._ends: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._stopping = Event()
        self._accepting = Thread(target=self._accept, daemon=True)

    def __enter__(self) -> DelayingWire:
        """Begin to accept."""
        self._accepting.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Cut all connections, and wait for the threads."""
        self._stopping.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ends += client, server
                self._carry(client, server, self._wire.request_ms)
                self._carry(server, client, self._wire.answer_ms)

    def _carry(self, source: socket.socket, target: socket.socket, hold_ms: float) -> None:
        under_way: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        for work, arguments in (
            (_read, (source, under_way)),
            (self._send, (target, under_way, round(hold_ms * 1e6))),
        ):
            thread = Thread(target=work, args=arguments, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _send(
        self, target: socket.socket, under_way: SimpleQueue[tuple[int, bytes]], hold_ns: int
    ) -> None:
        begun_ns = 0
        with suppress(OSError):
            while True:
                read_ns, content = under_way.get()
                begun_ns = begun_ns or read_ns
                due_in_ns = until(read_ns, hold_ns, time.monotonic_ns)
                if due_in_ns > 0 and self._stopping.wait(due_in_ns / 1e9):
                    return
                if content == _END:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(content)
                if self.passages.note(content, Passage(begun_ns, read_ns, time.monotonic_ns())):
                    begun_ns = 0


def until(read_ns: int, hold_ns: int, now_ns: Callable[[], int]) -> int:
    """For how long bytes that were read then are still to be held, in ns; 0 if they are due."""
    return max(0, read_ns + hold_ns - now_ns())


def _read(source: socket.socket, under_way: SimpleQueue[tuple[int, bytes]]) -> None:
    content = b"begin"
    while content != _END:
        try:
            content = source.recv(_CHUNK)
        except OSError:
            content = _END
        under_way.put((time.monotonic_ns(), content))
