"""The journal: what was accepted and has not left for good yet, on disk, so that no end loses it.

    append ──> batches: id, content, spans, sent      a batch goes when all of its spans may go;
    settle ──> settled: batch, which spans (bits)     until then it is told which of them may

SQLite in WAL mode, one file of one process. What `append` has returned for survives kill -9; with
FULL durability the end of the machine too.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from llmlat_processor.edges.journal_file import (
    PAGE_BYTES,
    VERSION,
    Batch,
    JournalError,
    open_file,
    remove_file,
    words_of,
)
from llmlat_processor.settings import JournalSettings

_SPARE_BYTES: Final = 16 << 20
"""Free space in the file that is not worth giving back."""

_PARTS: Final = 20
"""The last of so many parts is room for what is large."""

_PAGES_BACK: Final = 512
"""How many pages are given back at a time: nobody waits long for the lock."""

_logger = logging.getLogger("llmlat_processor")


class Entry(NamedTuple):
    """A batch that an earlier process has accepted.

    Attributes:
        batch: its id.
        content: its bytes, as they were appended.
        sent: whether its spans had been sent on as it was appended.
        settled: positions of the spans that need not be kept any more.
    """

    batch: int
    content: bytes
    sent: bool
    settled: frozenset[int]


class Journal:
    """The file of one processor, open from the moment it is made; safe to use from any thread."""

    def __init__(self, path: Path, settings: JournalSettings) -> None:
        """Open a file, or begin one; what is in it can be had by `replay`.

        A file that cannot be read is kept beside it, as `NAME.damaged-1` and so on.

        Args:
            path: of the file; folders that are missing are made.
            settings: how much it keeps, and what it survives.

        Raises:
            JournalError: another process uses it, a later version wrote it, or it cannot be had.
        """
        self._path = path
        self._settings = settings
        self._lock = Lock()
        self._unwritten: set[int] = set()  # batches of which memory knows more than the file
        self._fault = ""
        self._replayed = 0
        self._is_closed = False
        opened = open_file(path, settings.durability)
        self._connection: sqlite3.Connection | None = opened.connection
        self._batches = opened.batches
        self._damaged = opened.damaged
        self._held_bytes = sum(batch.content_bytes for batch in opened.batches.values())
        self._next = max(opened.batches, default=0) + 1

    @property
    def is_healthy(self) -> bool:
        """Whether the last write succeeded; being full is no fault."""
        return not self._fault

    @property
    def is_full(self) -> bool:
        """Whether a request of a usual size has no room any more."""
        return self._held_bytes * _PARTS >= self._settings.max_bytes * (_PARTS - 1)

    @property
    def fault(self) -> str:
        """Why the last write failed; empty where it did not."""
        return self._fault

    @property
    def held_bytes(self) -> int:
        """Bytes of all batches in the file."""
        return self._held_bytes

    @property
    def batches(self) -> int:
        """How many batches are in the file."""
        return len(self._batches)

    @property
    def replayed(self) -> int:
        """How many spans `replay` has given that were not settled."""
        return self._replayed

    @property
    def damaged(self) -> int:
        """How many files could not be read and were put beside the journal at its start."""
        return self._damaged

    def append(self, content: bytes, spans: int, *, sent: bool = False) -> int:
        """Keep a batch; it is on disk when this returns.

        Args:
            content: an ExportTraceServiceRequest.
            spans: how many spans are in it, at least one.
            sent: whether they were sent on already.

        Returns:
            The id of the batch.

        Raises:
            JournalError: there is no room, or it cannot be written; it may work later.
        """
        if spans < 1:
            raise ValueError(f"a batch of {spans} spans could never be settled")
        with self._lock:
            if self._held_bytes + len(content) > self._settings.max_bytes:
                raise JournalError(
                    f"the journal is full: {self._held_bytes} of {self._settings.max_bytes} bytes"
                    f" are kept, and this needs {len(content)}"
                )
            batch = self._next
            with self._writing() as connection:
                connection.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?)", (batch, spans, sent, content)
                )
            self._next += 1
            self._batches[batch] = Batch(spans, len(content))
            self._held_bytes += len(content)
        return batch

    def settle(self, done: Mapping[int, Sequence[int]]) -> None:
        """Let spans go; what cannot be written now is written by a later call, or by `probe`.

        Args:
            done: positions of spans, in the order in which they are decoded, by batch.
        """
        with self._lock:
            for number, positions in done.items():
                batch = self._batches.get(number)
                if batch is not None:
                    batch.settled |= _bits(positions)
                    self._unwritten.add(number)
            self._write_settled()

    def probe(self) -> bool:
        """Mend what can be mended; to be called now and then.

        What could not be written is written, and where a write failed before, it is tried
        whether one succeeds now; a file that is mostly free space shrinks by a part of that.

        Returns:
            Whether the journal is healthy.
        """
        with self._lock:
            if self._is_closed:
                return False
            if self._unwritten:
                self._write_settled()
            elif self._fault:
                with suppress(JournalError), self._writing() as connection:
                    connection.execute(f"PRAGMA user_version = {VERSION}")
            if not self._fault:
                self._give_back()
            return not self._fault

    def replay(self) -> Iterator[Entry]:
        """What is in the file as this is called, batch by batch in the order of their ids.

        Meanwhile others may append and settle. What cannot be read stays for the next start.
        """
        with self._lock:
            numbers = sorted(self._batches)
        return self._entries(numbers)

    def _entries(self, numbers: Sequence[int]) -> Iterator[Entry]:
        for number in numbers:
            with self._lock:
                batch = self._batches.get(number)
                row = self._read(number) if batch else None
            if batch and row:
                content, sent = row
                self._replayed += batch.spans - batch.settled.bit_count()
                yield Entry(number, content, bool(sent), _positions(batch.settled))

    def close(self) -> None:
        """Write what is still to be written, and leave one file that is complete by itself."""
        with self._lock:
            self._write_settled()
            if not self._batches and self._connection is not None:
                with suppress(sqlite3.Error):  # it is as good without
                    self._connection.execute("VACUUM")
            self._is_closed = True
            self._disconnect()

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One write: all of it or nothing, and `is_healthy` tells which."""
        if self._is_closed:
            raise JournalError("the journal is closed")
        connection = self._connection or self._open()
        try:
            yield connection
        except sqlite3.Error as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            words = words_of(error)
            if words != self._fault:
                _logger.warning("%s: %s; nothing is accepted until it can", self._path, words)
            self._fault = words
            raise JournalError(words) from error
        if self._fault:
            self._fault = ""
            _logger.warning("%s: can be written again", self._path)

    def _write_settled(self) -> None:
        """Bring the file up to what is known, in one transaction; the lock is held."""
        if not self._unwritten or self._is_closed:
            return
        complete = [number for number in self._unwritten if self._batches[number].is_complete]
        try:
            with self._writing() as connection:
                connection.execute("BEGIN IMMEDIATE")
                for number in self._unwritten.difference(complete):
                    self._write_positions(connection, number)
                for number in complete:
                    connection.execute("DELETE FROM batches WHERE id = ?", (number,))
                    connection.execute("DELETE FROM settled WHERE batch = ?", (number,))
                connection.execute("COMMIT")
        except JournalError:
            if all(batch.is_complete for batch in self._batches.values()):
                self._begin_anew()
            return
        self._unwritten.clear()
        for number in complete:
            self._held_bytes -= self._batches.pop(number).content_bytes

    def _write_positions(self, connection: sqlite3.Connection, number: int) -> None:
        batch = self._batches[number]
        positions = batch.settled.to_bytes((batch.settled.bit_length() + 7) // 8, "little")
        connection.execute("INSERT OR REPLACE INTO settled VALUES (?, ?)", (number, positions))

    def _give_back(self) -> None:
        """Shrink a file that is mostly free space; what remains free is written again."""
        with suppress(JournalError), self._writing() as connection:
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            if free * PAGE_BYTES > _SPARE_BYTES + self._held_bytes:
                # `execute` would end after its first page, since it gives no rows.
                connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_BACK})")

    def _begin_anew(self) -> None:
        """A full disk takes not even a deletion; where all may be deleted, the file may be."""
        self._disconnect()
        try:
            remove_file(self._path)
            self._batches.clear()
            self._unwritten.clear()
            self._held_bytes = 0
            self._open()
        except (OSError, JournalError) as error:  # whoever writes next tries to open it again
            self._fault = f"the journal cannot be begun anew: {error}"
            return
        self._fault = ""
        _logger.warning("%s: was stuck, and all in it was settled: begun anew", self._path)

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    def _read(self, number: int) -> tuple[bytes, int] | None:
        """Content of a batch, and whether it was sent; the lock is held."""
        if self._connection is None:
            return None
        query = "SELECT content, sent FROM batches WHERE id = ?"
        try:
            row: tuple[bytes, int] = self._connection.execute(query, (number,)).fetchone()
        except sqlite3.Error as error:
            _logger.warning("%s: batch %d cannot be read: %s", self._path, number, error)
            return None
        return row

    def _open(self) -> sqlite3.Connection:
        """Open the file again; what is in it is known better in memory."""
        opened = open_file(self._path, self._settings.durability)
        self._connection = opened.connection
        self._damaged += opened.damaged
        return opened.connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _bits(positions: Sequence[int]) -> int:
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def _positions(bits: int) -> frozenset[int]:
    return frozenset(at for at in range(bits.bit_length()) if bits >> at & 1)
