"""The file that a history of clocks goes on from: whose turn it is, read, replaced whole.

one run      lock ─ read ─── explains traces ─── write ─ unlock
another one          says that it waits                  lock ─ read ─ ...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from llmlat_processor.clock_history import (
    ClockHistory,
    HistorySettings,
    NotAHistoryError,
    from_bytes,
    to_bytes,
)

if sys.platform != "win32":
    import fcntl


class ClockState:
    """One state file; a link is followed, so that it stays one."""

    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        """Name a file.

        Args:
            path: the file; it need not exist.
            tell: is told what goes wrong.
        """
        self._file = Path(os.path.realpath(path))
        self._named = path
        self._say = tell

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other run in between what is read and what is written, where that can be had."""
        lock = self._locked()
        try:
            yield
        finally:
            if lock is not None:
                with suppress(OSError):
                    self._lock_file.unlink()
                os.close(lock)

    def read(self, settings: HistorySettings) -> ClockHistory | None:
        """What earlier runs learned; None where the file is something that must not be lost."""
        try:
            return from_bytes(self._file.read_bytes(), settings)
        except FileNotFoundError:
            return ClockHistory(settings)
        except OSError as error:
            reason = error.strerror or str(error)
        except NotAHistoryError as error:
            reason = str(error)
        self._tell(f"{reason}; begun without it, and it stays as it is")
        return None

    def write(self, history: ClockHistory) -> bool:
        """Put a history in its place in one piece: a reader has the old one or the new one."""
        unfinished = self._file.with_name(f"{self._file.name}.{token_hex(8)}.new")
        try:
            self._write(unfinished, to_bytes(history))
            os.replace(unfinished, self._file)  # noqa: PTH105 - one that renames over what is there
        except OSError as error:
            self._tell(f"{error.strerror or error}; what was learned is not kept")
            return False
        finally:
            with suppress(OSError):  # it is gone where all went well
                unfinished.unlink()
        with suppress(OSError):  # no such thing on Windows
            _to_disk(self._file.parent)
        return True

    @property
    def _lock_file(self) -> Path:
        return self._file.with_name(f"{self._file.name}.lock")

    def _write(self, unfinished: Path, content: bytes) -> None:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # the first state
            unfinished.chmod(self._file.stat().st_mode & 0o7777)

    def _locked(self) -> int | None:
        """A lock that goes with its process, whatever ends it; None where there can be none."""
        try:
            return None if sys.platform == "win32" else self._lock()
        except (FileNotFoundError, NotADirectoryError):  # nor is there a folder for the state
            return None
        except OSError as error:
            self._tell(f"{error.strerror or error}; nothing keeps other runs off it meanwhile")
            return None

    def _lock(self) -> int:
        while True:
            lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self._wait_for(lock)
                if _is_same(lock, self._lock_file):
                    return lock
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)  # who had it has taken the file away

    def _wait_for(self, lock: int) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._tell("another run has it; this one waits until that has ended")
            fcntl.flock(lock, fcntl.LOCK_EX)

    def _tell(self, words: str) -> None:
        self._say(f"{self._named}: {words}")


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
