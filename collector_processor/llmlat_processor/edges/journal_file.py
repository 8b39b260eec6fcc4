"""The file of a journal: made for our eyes only, of one process only, and put aside if unreadable.

NAME               batches, and which of their spans are settled
NAME-wal           what was written last; a file that was closed has none
NAME.damaged-1     what could not be read, for a person to look at
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from llmlat_processor.settings import Durability

VERSION: Final = 1
"""Of the tables; a file of a later one is left alone."""

PAGE_BYTES: Final = 8 << 10
"""Larger pages make large batches cheaper, but small ones and settling dearer."""

_WAL_BYTES: Final = 16 << 20
"""From there on SQLite moves what was written into the main file, and starts the WAL again."""

_SYNCHRONOUS: Final = {Durability.NORMAL: "NORMAL", Durability.FULL: "FULL"}
_COMPANIONS: Final = ("-wal", "-shm", "-journal")

_TABLES: Final = (
    "CREATE TABLE batches (id INTEGER PRIMARY KEY, spans INTEGER NOT NULL, sent INTEGER NOT NULL,"
    " content BLOB NOT NULL)",
    "CREATE TABLE settled (batch INTEGER PRIMARY KEY, positions BLOB NOT NULL)",
    f"PRAGMA user_version = {VERSION}",
)

_OF_THE_DISK: Final = ("disk", "full", "readonly", "unable to open")
"""What SQLite says where the file may be sound, but cannot be had or written."""

_PLAUSIBLE: Final = 1_000
"""A version above it is the number of nothing."""

_logger = logging.getLogger("llmlat_processor")


class JournalError(Exception):
    """Nothing was written; the message says why. That of `append` may be told to any sender."""


class Batch:
    """What is known of a batch in memory; bit n of `settled` is the span at position n."""

    __slots__ = ("content_bytes", "settled", "spans")

    def __init__(self, spans: int, content_bytes: int, settled: int = 0) -> None:
        self.spans = spans
        self.content_bytes = content_bytes
        self.settled = settled

    @property
    def is_complete(self) -> bool:
        """Whether all of its spans are settled."""
        return self.settled.bit_count() >= self.spans


class Opened(NamedTuple):
    """A file that is ours alone until it is closed.

    Attributes:
        connection: in autocommit mode, for any thread, one at a time.
        batches: what is in it, by id.
        damaged: how many files had to be put aside for it.
    """

    connection: sqlite3.Connection
    batches: dict[int, Batch]
    damaged: int


class _DamagedError(Exception):
    """The file cannot be read as a database."""


def open_file(path: Path, durability: Durability) -> Opened:
    """Open the file of a journal, or begin one.

    Args:
        path: of the file; folders that are missing are made.
        durability: what a write survives.

    Raises:
        JournalError: another process uses it, a later version wrote it, or it cannot be had.
    """
    try:
        try:
            return _opened(path, durability, damaged=0)
        except _DamagedError as error:
            _set_aside(path, str(error))
            return _opened(path, durability, damaged=1)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror or error}") from error
    except _DamagedError as error:
        raise JournalError(f"{path}: {error}") from error


def remove_file(path: Path) -> None:
    """Delete a closed file, with what SQLite keeps beside it; OSError where that fails."""
    for end in (*_COMPANIONS, ""):  # a WAL that is left would be written into the next file
        path.with_name(path.name + end).unlink(missing_ok=True)


def words_of(error: sqlite3.Error) -> str:
    """What failed; no path: whoever sends spans is told as well."""
    if "full" in str(error):
        return "the journal cannot be written: no space is left on its disk"
    return f"the journal cannot be written: {error}"


def _opened(path: Path, durability: Durability, damaged: int) -> Opened:
    _make(path)
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise _fault(path, error) from error
    try:
        _set_up(connection, path, durability)
        _examine(connection, path)
        return Opened(connection, _known(connection), damaged)
    except sqlite3.Error as error:
        connection.close()
        raise _fault(path, error) from error
    except BaseException:
        connection.close()
        raise


def _make(path: Path) -> None:
    """Make file and folders for our eyes only: SQLite would go by the umask."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # to open and close one that this process has would unlock it
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _fault(path: Path, error: sqlite3.Error) -> Exception:
    if "locked" in str(error):
        return JournalError(
            f"{path}: another processor uses it; give it another state directory, or wait for the"
            " end of that one: a worker whose parent was killed sends for a while what it holds"
        )
    if any(words in str(error) for words in _OF_THE_DISK) and "malformed" not in str(error):
        return JournalError(f"{path}: {words_of(error)}")
    return _DamagedError(str(error))


def _set_up(connection: sqlite3.Connection, path: Path, durability: Durability) -> None:
    """Lock it; one that somebody may still refuse is not written to."""
    pragmas = [
        "locking_mode = EXCLUSIVE",  # first: nobody may share the index of the WAL
        f"synchronous = {_SYNCHRONOUS[durability]}",
        "secure_delete = OFF",
        f"wal_autocheckpoint = {_WAL_BYTES // PAGE_BYTES}",
        f"journal_size_limit = {_WAL_BYTES}",
    ]
    if not path.stat().st_size:
        pragmas += [f"page_size = {PAGE_BYTES}", "auto_vacuum = INCREMENTAL"]
    for pragma in (*pragmas, "journal_mode = WAL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _examine(connection: sqlite3.Connection, path: Path) -> None:
    """See that it is a journal that we understand, and whole; make the tables of an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if VERSION < version < _PLAUSIBLE:
        raise JournalError(
            f"{path}: a later version of llmlat wrote it (format {version}, known here {VERSION});"
            " run that version, or give another state directory"
        )
    if not tables:
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("COMMIT")
    elif version != VERSION or not tables >= {"batches", "settled"}:
        raise _DamagedError("it is no journal")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _DamagedError(str(verdict))


def _known(connection: sqlite3.Connection) -> dict[int, Batch]:
    """What is in it, without the contents."""
    settled = {
        number: int.from_bytes(positions, "little")
        for number, positions in connection.execute(
            "SELECT batch, CAST(positions AS BLOB) FROM settled"
        )
    }
    return {
        number: Batch(spans, content_bytes, settled.get(number, 0))
        for number, spans, content_bytes in connection.execute(
            "SELECT id, CAST(spans AS INTEGER), length(content) FROM batches"
        )
    }


def _set_aside(path: Path, reason: str) -> None:
    """Rename what cannot be read, and what SQLite keeps beside it; nothing is deleted."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for end in ("", *_COMPANIONS):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).rename(kept.with_name(kept.name + end))
    _logger.warning(
        "%s cannot be read (%s): kept as %s, and begun anew; spans in it are not sent",
        path,
        reason,
        kept.name,
    )
