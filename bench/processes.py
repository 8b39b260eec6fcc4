"""Processes that are measured from outside: what they take of CPU and memory, as the kernel has it.

What a process has started counts as its own, as long as it is there (proc_pid_stat(5)).
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOOPBACK: Final = "127.0.0.1"
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PATIENCE_S: Final = 120
_POLL_S: Final = 0.02
_GRACE_S: Final = 15
_CALM_S: Final = 1.0
_IDLE_SHARE: Final = 0.05
_LAST_BYTES: Final = 2_000


class ProcessError(Exception):
    """A process ended, or did not do its part in time."""


def free_address() -> str:
    """A port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return f"{_LOOPBACK}:{probe.getsockname()[1]}"


class Measured:
    """A process, and what the kernel says of it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def cpu_s(self) -> float:
        """CPU that it has taken so far, user and system."""
        return sum(_cpu_s(pid) for pid in self._family())

    def resident_bytes(self) -> int:
        """Memory that it has now."""
        return sum(_resident_bytes(pid) for pid in self._family())

    def listening(self, address: str) -> None:
        """Wait until it takes connections.

        Raises:
            ProcessError: it ended, or never did.
        """
        host, _, port = address.rpartition(":")
        for _ in self.waiting(f"nothing listens on {address}"):
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._process.poll() is not None

    def ended(self) -> None:
        """Wait until it has ended well.

        Raises:
            ProcessError: it ended otherwise, or not at all.
        """
        try:
            status = self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise self._error("it never ended") from None
        if status:
            raise self._error(f"it ended with {status}")

    def calm(self) -> None:
        """Wait until it does next to nothing.

        Raises:
            ProcessError: it ended, or never did.
        """
        for _ in self.waiting("it never came to rest"):
            before = self.cpu_s()
            time.sleep(_CALM_S)
            if self.cpu_s() - before < _IDLE_SHARE * _CALM_S:
                return

    def waiting(self, otherwise: str) -> Iterator[None]:
        """Turns of a wait; it ends with an error when the process has, or when it takes too long.

        Raises:
            ProcessError: says what it was waited for, and the last words of the process.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline and not self.is_over:
            yield
            time.sleep(_POLL_S)
        raise self._error(otherwise)

    def stop(self) -> None:
        """Ask it to end; make it, if it does not."""
        if not self.is_over:
            self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _error(self, words: str) -> ProcessError:
        return ProcessError(f"{words}\n{self._log.read_text(errors='replace')[-_LAST_BYTES:]}")

    def _family(self) -> list[int]:
        """Its own id, and those of all that it has started and that are still there."""
        found = [self._process.pid]
        for pid in found:  # grows as it goes
            found += _children(pid)
        return found


@contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[Measured]:
    """Start a process that no Ctrl-C reaches, and stop it at the end, by its id."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    measured = Measured(process, log)
    try:
        yield measured
    finally:
        measured.stop()


def _cpu_s(pid: int) -> float:
    """Utime and stime, fields 14 and 15; the name before them may hold anything."""
    fields = _told(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def _resident_bytes(pid: int) -> int:
    fields = _told(pid, "statm").split()
    return int(fields[1]) * _PAGE_BYTES if fields else 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in _told(pid, f"task/{pid}/children").split()]


def _told(pid: int, what: str) -> str:
    """From /proc; nothing where the process has gone."""
    try:
        return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
