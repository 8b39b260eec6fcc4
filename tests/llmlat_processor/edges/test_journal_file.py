"""The file of a journal: whose it is, who may read it, and what a damaged one costs."""

from __future__ import annotations

import logging
import random
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from llmlat_processor.edges.journal import Journal
from llmlat_processor.edges.journal_file import VERSION, JournalError
from llmlat_processor.settings import JournalSettings

SETTINGS = JournalSettings()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "deep" / "journal.db"


def filled(path: Path) -> bytes:
    """A journal of some batches that was closed; its file."""
    with closing(Journal(path, SETTINGS)) as journal:
        for number in range(20):
            batch = journal.append(bytes([number]) * 3_000, 10)
            journal.settle({batch: [number % 10]})
    return path.read_bytes()


def test_nobody_else_may_read_it(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        journal.append(b"one", 1)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_closing_leaves_one_file(path: Path) -> None:
    filled(path)
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]


def test_a_file_is_of_one_processor(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        for _ in range(2):  # being refused must not end the lock of the first
            with pytest.raises(JournalError, match="another processor uses it; give it another"):
                Journal(path, SETTINGS)
        journal.append(b"one", 1)
    with closing(Journal(path, SETTINGS)) as journal:
        assert journal.batches == 1


def test_a_file_of_a_later_version_is_left_as_it_is(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"a later version of llmlat wrote it.*run that version"):
        Journal(path, SETTINGS)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_kept_beside_it(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id)")
    with closing(Journal(path, SETTINGS)) as journal:
        assert journal.damaged == 1
    with closing(sqlite3.connect(path.with_name("journal.db.damaged-1"))) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"file/journal\.db: "):
        Journal(tmp_path / "file" / "journal.db", SETTINGS)


def test_what_cannot_be_opened_is_told(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(JournalError, match=r"journal\.db: "):
        Journal(path, SETTINGS)


def test_a_damaged_file_is_kept_beside_a_fresh_one(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir(parents=True)
    for number in (1, 2):
        path.write_bytes(b"no database at all, whatever it was before" * 100)
        with caplog.at_level(logging.WARNING), closing(Journal(path, SETTINGS)) as journal:
            assert (journal.batches, journal.damaged) == (0, 1)
            journal.append(b"one", 1)
        kept = path.with_name(f"journal.db.damaged-{number}")
        assert kept.read_bytes().startswith(b"no database at all")
        assert f"kept as {kept.name}" in caplog.text


def test_an_empty_file_is_a_journal_to_begin(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    with closing(Journal(path, SETTINGS)) as journal:
        assert (journal.batches, journal.damaged) == (0, 0)


def test_tables_that_are_missing_are_a_damage(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE settled")
    with closing(Journal(path, SETTINGS)) as journal:
        assert (journal.batches, journal.damaged) == (0, 1)


@pytest.mark.parametrize("seed", range(60))
def test_it_starts_whatever_became_of_the_file(path: Path, seed: int) -> None:
    sound = filled(path)
    chance = random.Random(seed)
    broken = bytearray(sound)
    if seed % 3 == 0:
        del broken[chance.randrange(len(broken)) :]
    else:
        start = 0 if seed % 3 == 1 else chance.randrange(len(broken))
        for _ in range(chance.choice((1, 10, 1_000))):
            at = start + chance.randrange(4_096)
            broken[at % len(broken)] = chance.randrange(256)
    path.write_bytes(broken)
    with closing(Journal(path, SETTINGS)) as journal:
        entries = list(journal.replay())
        journal.settle({entry.batch: range(10) for entry in entries})
        journal.append(b"one", 1)
        assert journal.is_healthy
    kept = path.with_name("journal.db.damaged-1")
    assert kept.exists() == bool(journal.damaged)
