"""The journal: what it keeps, what it lets go, and what a disk that is full does to it."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from llmlat_processor.edges.journal import Entry, Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.settings import Durability, JournalSettings

SETTINGS = JournalSettings()
NONE: frozenset[int] = frozenset()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with closing(Journal(path, SETTINGS)) as opened:
        yield opened


def left(path: Path) -> Sequence[Entry]:
    """What the next process finds."""
    with closing(Journal(path, SETTINGS)) as journal:
        return list(journal.replay())


def size_of(path: Path) -> int:
    """Bytes of everything in the folder of a journal."""
    return sum(file.stat().st_size for file in path.parent.iterdir())


@contextmanager
def no_file_grows_above(size: int) -> Iterator[None]:
    """A disk with that much space, as far as this process can see."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_appended_is_there_in_its_order_for_the_next_process(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batches = [journal.append(b"one", 1), journal.append(b"two", 2, sent=True)]
        assert (journal.batches, journal.held_bytes) == (2, 6)
    assert left(path) == [
        Entry(batches[0], b"one", sent=False, settled=NONE),
        Entry(batches[1], b"two", sent=True, settled=NONE),
    ]


def test_a_batch_goes_with_the_last_of_its_spans(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batch = journal.append(b"three spans", 3)
        journal.settle({batch: [2]})
        journal.settle({batch: [0, 2]})  # who settles a span again settles nothing
        assert journal.batches == 1
    assert [entry.settled for entry in left(path)] == [{0, 2}]
    with closing(Journal(path, SETTINGS)) as journal:
        journal.settle({batch: [1]})
        assert (journal.batches, journal.held_bytes) == (0, 0)
    assert not left(path)


def test_replaying_counts_the_spans_that_are_not_settled(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        journal.append(b"two spans", 2)
        journal.settle({journal.append(b"three spans", 3): [1]})
    with closing(Journal(path, SETTINGS)) as journal:
        assert journal.replayed == 0
        assert len(list(journal.replay())) == 2
        assert journal.replayed == 2 + 2


def test_a_batch_that_is_settled_during_a_replay_is_not_replayed(journal: Journal) -> None:
    first, second = journal.append(b"one", 1), journal.append(b"two", 1)
    replay = journal.replay()
    assert next(replay).batch == first
    journal.settle({second: [0]})
    journal.append(b"three", 1)
    assert list(replay) == []


def test_an_id_is_never_given_twice_while_its_batch_is_kept(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        first = journal.append(b"one", 1)
    with closing(Journal(path, SETTINGS)) as journal:
        assert journal.append(b"two", 1) > first


def test_spans_of_a_batch_that_nobody_knows_are_settled_already(journal: Journal) -> None:
    batch = journal.append(b"one", 1)
    journal.settle({batch: [0]})
    journal.settle({batch: [0], 4_711: [3]})
    assert (journal.batches, journal.is_healthy) == (0, True)


def test_a_batch_without_spans_is_refused_since_it_would_stay_for_ever(journal: Journal) -> None:
    with pytest.raises(ValueError, match="0 spans"):
        journal.append(b"", 0)


def test_a_full_journal_says_so_and_is_not_ill(path: Path) -> None:
    with closing(Journal(path, JournalSettings(max_bytes=10))) as journal:
        batch = journal.append(b"7 bytes", 1)
        with pytest.raises(JournalError, match="the journal is full: 7 of 10 bytes"):
            journal.append(b"four", 1)
        assert journal.is_healthy
        journal.settle({batch: [0]})
        journal.append(b"four", 1)


def test_it_is_full_before_the_last_byte_and_not_when_that_is_settled(path: Path) -> None:
    with closing(Journal(path, JournalSettings(max_bytes=100))) as journal:
        journal.append(b"x" * 94, 1)
        assert not journal.is_full
        last = journal.append(b"x", 1)
        assert journal.is_full
        journal.settle({last: [0]})
        assert not journal.is_full


def test_a_closed_journal_takes_nothing_and_closing_again_is_nothing(path: Path) -> None:
    journal = Journal(path, SETTINGS)
    batch = journal.append(b"one", 1)
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.append(b"two", 1)
    journal.settle({batch: [0]})
    assert not journal.probe()
    journal.close()
    assert [entry.content for entry in left(path)] == [b"one"]


def test_threads_append_and_settle_at_once(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:

        def work(number: int) -> int:
            batch = journal.append(b"%d" % number, 2)
            journal.settle({batch: [0, 1] if number % 2 else [1]})
            return batch

        with ThreadPoolExecutor(4) as threads:
            batches = list(threads.map(work, range(100)))
        assert len(set(batches)) == 100
    assert {entry.content for entry in left(path)} == {b"%d" % n for n in range(0, 100, 2)}


def test_a_disk_without_space_refuses_until_there_is_some(path: Path, journal: Journal) -> None:
    kept = journal.append(b"k" * 10_000, 2)
    with no_file_grows_above(size_of(path)):
        with pytest.raises(JournalError, match="the journal cannot be written") as caught:
            journal.append(bytes(100_000), 1)
        assert str(path) not in str(caught.value)  # a sender need not know our folders
        assert not journal.is_healthy
        assert journal.fault == str(caught.value)
        assert not journal.probe()
        journal.settle({kept: [0]})
        assert journal.batches == 1
    assert journal.probe()
    assert journal.fault == ""
    journal.append(bytes(100_000), 1)


def test_what_was_settled_on_a_full_disk_is_written_when_there_is_space(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        going, staying = journal.append(b"g" * 10_000, 2), journal.append(b"s" * 10_000, 2)
        with no_file_grows_above(size_of(path) // 2):
            journal.settle({going: [0, 1], staying: [1]})
            assert (journal.batches, journal.is_healthy) == (2, False)
        assert journal.probe()
        assert (journal.batches, journal.held_bytes) == (1, 10_000)
    assert [(entry.batch, entry.settled) for entry in left(path)] == [(staying, frozenset({1}))]


def test_a_disk_too_full_to_delete_anything_is_left_behind_when_all_is_settled(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batches = [journal.append(bytes(100_000), 1) for _ in range(10)]
        with no_file_grows_above(size_of(path) // 2):
            for batch in batches:
                journal.settle({batch: [0]})
            assert (journal.batches, journal.held_bytes) == (0, 0)
            assert journal.is_healthy
            assert journal.append(b"more", 1) > batches[-1]
    assert [entry.content for entry in left(path)] == [b"more"]


def _fail(*_: object) -> None:
    raise OSError("no such luck")


@pytest.mark.parametrize("step", ["remove_file", "open_file"])
def test_beginning_anew_that_fails_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batch = journal.append(bytes(1_000_000), 1)
        with monkeypatch.context() as patch, no_file_grows_above(size_of(path) // 2):
            patch.setattr(f"llmlat_processor.edges.journal.{step}", _fail)
            journal.settle({batch: [0]})
            assert "no such luck" in journal.fault
        assert journal.probe()
        assert (journal.batches, journal.held_bytes) == (0, 0)
        journal.append(b"more", 1)
    assert [entry.content for entry in left(path)] == [b"more"]


def test_a_file_that_is_mostly_free_shrinks_while_some_of_it_is_kept(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batches = [journal.append(bytes(1 << 20), 1) for _ in range(64)]
        full = path.stat().st_size
        for batch in batches[1:]:
            journal.settle({batch: [0]})
        for _ in range(20):
            assert journal.probe()
    assert path.stat().st_size < full // 2
    assert [entry.batch for entry in left(path)] == batches[:1]


def test_a_journal_that_is_closed_empty_is_small(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        batches = [journal.append(bytes(1 << 20), 1) for _ in range(20)]
        journal.settle({batch: [0] for batch in batches})
    assert size_of(path) < 100_000


def test_the_files_stay_bounded_whatever_passes_through_them(path: Path) -> None:
    with closing(Journal(path, SETTINGS)) as journal:
        largest = 0
        for _ in range(200):
            journal.settle({journal.append(bytes(1 << 20), 1): [0]})
            largest = max(largest, size_of(path))
    assert largest < 40 << 20


def test_full_durability_keeps_the_same(path: Path) -> None:
    settings = JournalSettings(durability=Durability.FULL)
    with closing(Journal(path, settings)) as journal:
        journal.append(b"one", 1)
    assert [entry.content for entry in left(path)] == [b"one"]
