"""A wire between a client and a server that can be slow, or dead without telling anybody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread


class Relay:
    """Listens on loopback and passes bytes on to a server, one connection for each."""

    def __init__(self, server: str, greeting_s: float = 0) -> None:
        """Pass bytes on; those of the server only after so many seconds of each connection."""
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        self._greeting_s = greeting_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        self._cuts: list[Event] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def connections(self) -> int:
        """How many there were so far."""
        return len(self._cuts)

    def cut(self) -> None:
        """From now on swallow what comes on the connections that there are."""
        for dead in self._cuts:
            dead.set()

    def stop(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join()
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
                dead = Event()
                self._cuts.append(dead)
                self._ends += client, server
                for source, target, wait_s in (
                    (client, server, 0.0),
                    (server, client, self._greeting_s),
                ):
                    thread = Thread(target=_pass_on, args=(source, target, wait_s, dead))
                    thread.start()
                    self._threads.append(thread)


def _pass_on(source: socket.socket, target: socket.socket, wait_s: float, dead: Event) -> None:
    dead.wait(wait_s)
    with suppress(OSError):
        while content := source.recv(1 << 16):
            if not dead.is_set():
                target.sendall(content)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(server: str, greeting_s: float = 0) -> Iterator[Relay]:
    running = Relay(server, greeting_s)
    try:
        yield running
    finally:
        running.stop()
