"""Another number of workers finds all that the one before has left, each trace where it belongs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmlat_processor.edges.journal import Entry, Journal
from llmlat_processor.service import resharding
from llmlat_processor.service.processor import CLOCKS, JOURNAL
from llmlat_processor.service.resharding import ASIDE, journal_folders, reshard
from llmlat_processor.wire import decode
from llmlat_processor.wire.sharding import shard_of
from llmlat_processor.wire.skeletons import pack, unpack
from tests.llmlat_processor.forwarding import span
from tests.llmlat_processor.otlp import request
from tests.llmlat_processor.service.deployments import KEPT
from tests.llmlat_processor.service.handed import released

TRACES = range(1, 9)


def leave(folder: Path, *traces: int, settled: Sequence[int] = ()) -> None:
    """A request of two spans of each trace, as an earlier run had accepted it."""
    journal = Journal(folder / JOURNAL, KEPT)
    spans = [span(number, trace=trace) for trace in traces for number in (1, 2)]
    batch = journal.append(request(spans).SerializeToString(), len(spans))
    journal.settle({batch: settled})
    journal.close()


def leave_skeletons(folder: Path, trace: int) -> None:
    """What was sent of a trace before its root came."""
    journal = Journal(folder / JOURNAL, KEPT)
    journal.append(pack(released(2, 3, trace=trace).spans, tight=True), 2, sent=True)
    journal.close()


def left(state: Path, workers: int) -> list[list[str]]:
    """The names of the spans in each journal that are still to be sent."""
    found = []
    for folder in journal_folders(state, workers):
        journal = Journal(folder / JOURNAL, KEPT)
        spans = [
            one.name
            for entry in journal.replay()
            if not entry.sent
            for at, one in enumerate(decode(entry.content).spans)
            if at not in entry.settled
        ]
        found.append(sorted(spans))
        journal.close()
    return found


def expected(traces: Sequence[int], workers: int) -> list[list[str]]:
    return [
        sorted(
            f"{trace}/{number}"
            for trace in traces
            if shard_of(trace.to_bytes(16, "big"), workers) == worker
            for number in (1, 2)
        )
        for worker in range(workers)
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, 3), (2, 1), (3, 2), (2, 4)])
def test_each_trace_is_left_to_the_worker_that_gets_its_spans(
    tmp_path: Path, before: int, after: int
) -> None:
    for number, folder in enumerate(journal_folders(tmp_path, before)):
        leave(folder, *[t for t in TRACES if shard_of(t.to_bytes(16, "big"), before) == number])

    reshard(tmp_path, after, KEPT)

    assert left(tmp_path, after) == expected(TRACES, after)
    assert not (tmp_path / ASIDE).exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_number_finds_everything_in_its_place(tmp_path: Path, workers: int) -> None:
    for folder in journal_folders(tmp_path, workers):
        leave(folder, *TRACES)
    files = {path: path.stat().st_ino for path in tmp_path.rglob(JOURNAL)}

    reshard(tmp_path, workers, KEPT)

    assert {path: path.stat().st_ino for path in tmp_path.rglob(JOURNAL)} == files


def test_what_is_settled_stays_so(tmp_path: Path) -> None:
    leave(tmp_path, 1, 2, settled=[0, 3])

    reshard(tmp_path, 2, KEPT)

    assert left(tmp_path, 2) == [["2/1"], ["1/2"]]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_skeletons_go_whole_to_where_their_root_will_come(
    tmp_path: Path, before: int, after: int
) -> None:
    leave_skeletons(journal_folders(tmp_path, before)[-1], 3)

    reshard(tmp_path, after, KEPT)

    folder = journal_folders(tmp_path, after)[shard_of((3).to_bytes(16, "big"), after)]
    journal = Journal(folder / JOURNAL, KEPT)
    (entry,) = journal.replay()
    journal.close()
    assert (entry.sent, len(unpack(entry.content))) == (True, 2)


def test_a_crash_on_the_way_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first of two journals was dealt out, and half of the second."""
    for number, folder in enumerate(journal_folders(tmp_path, 2)):
        leave(folder, *[t for t in TRACES if t % 2 == number])
    dealt: list[Entry] = []
    deal = resharding._deal

    def crash(entry: Entry, journals: Sequence[Journal]) -> int:
        if dealt:
            raise KeyboardInterrupt
        dealt.append(entry)
        return deal(entry, journals)

    with monkeypatch.context() as patched:
        patched.setattr(resharding, "_deal", crash)
        with pytest.raises(KeyboardInterrupt):
            reshard(tmp_path, 3, KEPT)
    assert (tmp_path / ASIDE).exists()
    reshard(tmp_path, 3, KEPT)

    assert left(tmp_path, 3) == expected(TRACES, 3)


@given(moved=st.integers(0, 3), after=st.integers(1, 5))
@settings(max_examples=20)
def test_a_crash_while_journals_are_moved_aside_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, moved: int, after: int
) -> None:
    state = tmp_path_factory.mktemp("state")
    for number, folder in enumerate(journal_folders(state, 4)):
        leave(folder, *[t for t in TRACES if t % 4 == number])
    for number, folder in enumerate(journal_folders(state, 4)[:moved]):
        (state / ASIDE / str(number)).mkdir(parents=True)
        (folder / JOURNAL).rename(state / ASIDE / str(number) / JOURNAL)

    reshard(state, after, KEPT)

    found = sorted(name for names in left(state, after) for name in names)
    assert found == sorted(f"{trace}/{number}" for trace in TRACES for number in (1, 2))


def test_a_journal_that_is_in_use_is_left_where_it_is(tmp_path: Path) -> None:
    leave(tmp_path, *TRACES)
    in_use = Journal(tmp_path / JOURNAL, KEPT)
    with pytest.raises(OSError, match="another processor uses it"):
        reshard(tmp_path, 2, KEPT)
    in_use.close()

    assert left(tmp_path, 1) == expected(TRACES, 1)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.touch()
    with pytest.raises(OSError, match=f"^{re.escape(str(state))}: Not a directory"):
        reshard(state, 1, KEPT)


def test_a_journal_that_cannot_be_read_is_kept_and_costs_no_other(tmp_path: Path) -> None:
    damaged, sound = journal_folders(tmp_path, 2)
    leave(sound, 1)
    damaged.mkdir()
    (damaged / JOURNAL).write_bytes(b"nothing that SQLite knows" * 1_000)

    reshard(tmp_path, 1, KEPT)

    assert left(tmp_path, 1) == expected([1], 1)
    assert [path.name for path in damaged.iterdir()] == [f"{JOURNAL}.damaged-1"]


def test_clocks_are_not_forgotten_when_one_process_does_it_all_again(tmp_path: Path) -> None:
    for folder in journal_folders(tmp_path, 2):
        leave(folder, 1)
        (folder / CLOCKS).write_bytes(b"what was learned")

    reshard(tmp_path, 1, KEPT)

    assert (tmp_path / CLOCKS).read_bytes() == b"what was learned"


def test_without_a_journal_nothing_is_touched(tmp_path: Path) -> None:
    leave(tmp_path, 1)

    reshard(tmp_path, 2, None)
    reshard(tmp_path / "missing", 2, KEPT)

    assert left(tmp_path, 1) == expected([1], 1)
