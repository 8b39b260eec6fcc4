"""The processes of the demo: started with their output in files, and stopped whatever happens."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.request import ProxyHandler, build_opener

__all__ = ["INTERRUPTS", "Child", "ChildError", "Children"]

T = TypeVar("T")

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# A busy machine can be fifty times slower than an idle one: patience ends only what hangs.
PATIENCE_S = 1800.0
_POLL_S = 0.05
_GRACE_S = 10.0
_LAST_LINES = 15

_loopback = build_opener(ProxyHandler({}))  # whatever proxy the environment names


class ChildError(Exception):
    """A process of the demo ended early, failed, or did not do its part in time."""


class Child:
    """One process; what it writes goes to two files in the given folder."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        self._output = folder / f"{name}.out"
        self._errors = folder / f"{name}.err"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches the demo alone, which then stops them
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def output(self) -> str:
        """Everything that it has written so far."""
        return self._output.read_text("utf-8", errors="replace")

    def announcement(self) -> dict[str, str]:
        """Wait for its first line, a JSON object, and give it.

        Raises:
            ChildError: it ended, or said nothing in time.
        """
        announced: dict[str, str] = json.loads(self._until(lambda: self._lines()[:1])[0])
        return announced

    def healthy(self, url: str) -> None:
        """Wait until the URL answers with success.

        Raises:
            ChildError: it ended, or did not answer in time.
        """
        self._until(lambda: _answers(url))

    def listening(self, address: str) -> None:
        """Wait until it takes connections at an address, host:port.

        Raises:
            ChildError: it ended, or did not listen in time.
        """
        self._until(lambda: _listens(address))

    def finished(
        self, on_line: Callable[[str], None] = lambda _: None, patience_s: float = PATIENCE_S
    ) -> None:
        """Wait for its end, and pass on its lines as they come.

        Raises:
            ChildError: it ended with an error, or not at all.
        """
        passed_on = 0

        def ended() -> bool:
            nonlocal passed_on
            end = self._process.poll() is not None  # asked first: no line comes after it
            lines = self._lines()
            for line in lines[passed_on:]:
                on_line(line)
            passed_on = len(lines)
            return end

        self._until(ended, patience_s)
        if self._process.returncode:
            raise ChildError(self._epitaph())

    def still_running(self) -> None:
        """Make sure that it has not ended by itself.

        Raises:
            ChildError: it has.
        """
        if self._process.poll() is not None:
            raise ChildError(self._epitaph())

    def stop(self) -> None:
        """Ask it to end; make it, if it does not."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _until(self, ready: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
        deadline = time.monotonic() + patience_s
        while True:
            ended = self._process.poll() is not None
            if result := ready():
                return result
            if ended:
                raise ChildError(self._epitaph())
            if time.monotonic() > deadline:
                raise ChildError(f"{self.name}: nothing for {patience_s:.0f} s{self._last_words()}")
            time.sleep(_POLL_S)

    def _lines(self) -> list[str]:
        """The lines that it has completed."""
        return self.output().split("\n")[:-1]

    def _epitaph(self) -> str:
        return f"{self.name} ended with status {self._process.returncode}{self._last_words()}"

    def _last_words(self) -> str:
        said = self._errors.read_text("utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return "".join(f"\n  {line}" for line in said)


class Children:
    """Starts processes, and stops each of them by its id when the block is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []

    def start(self, name: str, command: Sequence[str], **environment: str) -> Child:
        """Start one, with additions to our own environment."""
        with _undisturbed():
            child = Child(name, command, {**_inherited(), **environment}, self._folder)
            self._children.append(child)
        return child

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_error: object) -> None:
        with _undisturbed():
            for child in reversed(self._children):
                child.stop()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let interrupts wait: no process may start unnoticed or be left half stopped."""
    held: list[int] = []
    handlers = {
        each: signal.signal(each, lambda number, _frame: held.append(number)) for each in INTERRUPTS
    }
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    for number in held[:1]:
        signal.raise_signal(number)


def _inherited() -> dict[str, str]:
    """Our environment without what would send the demo's telemetry or requests elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "LLMLAT_", "OPENAI_")) and "proxy" not in name.lower()
    }


def _answers(url: str) -> bool:
    try:
        with _loopback.open(url, timeout=_GRACE_S) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_GRACE_S):
            return True
    except OSError:
        return False
