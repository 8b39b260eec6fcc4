"""`llmlat clocks --state`: nothing that was learned is lost, whoever runs at the same time."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmlat_processor.clock_history import ClockHistory, HistorySettings, from_bytes, to_bytes
from llmlat_processor.clock_state import ClockState
from llmlat_processor.commands.clocks import SAYS, Request, clocks
from llmlat_processor.commands.progress import Progress
from tests.llmlat_processor.calls_over_time import ten_minutes
from tests.llmlat_processor.clock_history.worlds import STILL, trace

LONG_S = 60
SETTINGS = HistorySettings()


class Listened(io.StringIO):
    """Standard error of a run in another thread, which is listened to for a word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.heard = threading.Event()
        self._word = word

    def write(self, text: str) -> int:
        """Write, and tell who listens."""
        if self._word in text:
            self.heard.set()
        return super().write(text)


def history_of(*numbers: int) -> ClockHistory:
    history = ClockHistory()
    for number in numbers:
        history.learn(trace(number), STILL.call(number * 1_000, 2, 10, 2))
    return history


def state_of(path: Path, err: io.StringIO | None = None) -> ClockState:
    progress = Progress(err or io.StringIO(), lambda: 0.0)
    return ClockState(str(path), lambda words: progress.tell(f"{SAYS}: {words}"))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    """A folder for a state and nothing else, in which no run may leave anything else."""
    folder = tmp_path / "kept"
    folder.mkdir()
    yield folder / "clocks.state"
    assert {path.name for path in folder.iterdir()} <= {"clocks.state", "clocks.link"}


@pytest.fixture
def calls(tmp_path: Path) -> str:
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(ten_minutes()[:4]) + "\n", encoding="utf-8")
    return str(path)


def test_what_another_run_is_writing_is_not_touched(kept: Path) -> None:
    other = kept.with_name("clocks.state.new")  # by a program that knew one name for all
    other.write_bytes(b"half")
    assert state_of(kept).write(history_of(1, 2))

    assert other.read_bytes() == b"half"
    assert kept.read_bytes() == to_bytes(history_of(1, 2))
    other.unlink()


def test_a_second_run_waits_says_so_and_goes_on_from_what_the_first_one_kept(
    kept: Path, calls: str
) -> None:
    out, err, codes = io.StringIO(), Listened("another run has it"), list[int]()
    request = Request([calls], state=str(kept), as_json=True)
    second = threading.Thread(
        target=lambda: codes.append(clocks(request, out, Progress(err, lambda: 0.0)))
    )
    first = state_of(kept)
    with first.alone():
        second.start()
        assert err.heard.wait(LONG_S)
        assert first.write(history_of(1, 2))
        first_key = history_of(1).pairs()
    second.join(LONG_S)

    assert codes == [0]
    assert err.getvalue() == (
        f"llmlat clocks: {kept}: another run has it; this one waits until that has ended\n"
    )
    assert {*first_key} < {*from_bytes(kept.read_bytes()).pairs()}


def test_who_waits_can_be_told_to_stop(kept: Path, calls: str) -> None:
    command = [sys.executable, "-m", "llmlat_processor.cli", "clocks", calls, "--state", str(kept)]
    state = state_of(kept)
    with (
        state.alone(),
        subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as run,
    ):
        assert run.stderr is not None
        assert b"another run has it" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(LONG_S) == 130
        assert run.stderr.read() == b""
    assert not kept.exists()


def test_a_link_to_a_state_stays_one(kept: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.state"
    there.write_bytes(to_bytes(history_of(1)))
    link = kept.with_name("clocks.link")
    link.symlink_to(there)
    state = state_of(link)
    with state.alone():
        assert state.read(SETTINGS) is not None
        assert state.write(history_of(1, 2))

    assert link.is_symlink()
    assert there.read_bytes() == to_bytes(history_of(1, 2))


def test_who_may_read_a_state_stays_as_it_was(kept: Path) -> None:
    assert state_of(kept).write(history_of(1))
    kept.chmod(0o640)
    assert state_of(kept).write(history_of(1, 2))

    assert kept.stat().st_mode & 0o777 == 0o640


def test_a_state_that_cannot_be_replaced_stays_whole(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of(kept).write(history_of(1))
    err = io.StringIO()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert not state_of(kept, err).write(history_of(1, 2))
    assert err.getvalue() == (
        f"llmlat clocks: {kept}: No space left on device; what was learned is not kept\n"
    )
    assert kept.read_bytes() == to_bytes(history_of(1))


def test_where_nothing_can_be_locked_that_is_told(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    err = io.StringIO()

    def unlocked(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unlocked)
    with state_of(kept, err).alone():
        assert state_of(kept).write(history_of(1))
    kept.with_name("clocks.state.lock").unlink()
    assert err.getvalue() == (
        f"llmlat clocks: {kept}: No locks available; nothing keeps other runs off it meanwhile\n"
    )


def test_a_state_that_is_nested_without_end_is_left_alone(kept: Path, calls: str) -> None:
    kept.write_bytes(b"[" * 200_000)
    err = io.StringIO()
    code = clocks(Request([calls], state=str(kept)), io.StringIO(), Progress(err, lambda: 0.0))

    assert code == 1
    assert err.getvalue() == (
        f"llmlat clocks: {kept}: it is no clock history; begun without it, and it stays as it is\n"
    )
    assert kept.read_bytes() == b"[" * 200_000
