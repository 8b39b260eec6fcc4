"""What is learned of clocks across traces: within bounds, and kept for the next run."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from llmlat_processor.clock_history import ClockHistory
from llmlat_processor.clock_state import ClockState
from llmlat_processor.model import Assumptions, ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.service.held_clocks import LEARNED_PER_S, HeldClocks
from llmlat_processor.wire import decode
from llmlat_semconv import attributes as names
from tests.llmlat_processor import otlp
from tests.llmlat_processor.otlp import request

CLIENT, SERVER = 3, 2
MS = 1_000_000
WAIT_S = 20


def call(trace: int) -> ExplainedTrace:
    """A call between two hosts: two messages between their clocks."""
    trace_id = trace.to_bytes(16, "big")
    caller = otlp.span(1, trace_id=trace_id, kind=CLIENT)
    callee = otlp.span(2, trace_id=trace_id, parent=(1).to_bytes(8, "big"), kind=SERVER)
    callee.start_time_unix_nano += 10 * MS
    callee.end_time_unix_nano -= 10 * MS
    spans = [
        span
        for number, message in enumerate((caller, callee))
        for span in decode(
            request(
                [message],
                {names.SERVICE_NAME: f"service-{number}", names.HOST_ID: f"host-{number}"},
            ).SerializeToString()
        ).spans
    ]
    return process(spans, Assumptions())


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The traces that any history has learned from."""
    traces: list[bytes] = []
    learn = ClockHistory.learn

    def noted(history: ClockHistory, trace_id: bytes, *rest: Any) -> None:
        traces.append(trace_id)
        learn(history, trace_id, *rest)

    monkeypatch.setattr(ClockHistory, "learn", noted)
    return traces


def test_so_many_traces_of_a_second_are_learned_from_and_no_more(learned: list[bytes]) -> None:
    now_s = [0.0]
    clocks = HeldClocks(None, lambda: now_s[0])
    for trace in range(1, LEARNED_PER_S + 10):
        clocks.observe(call(trace))
    assert len(learned) == LEARNED_PER_S
    now_s[0] = 1.0
    clocks.observe(call(1_000))

    assert len(learned) == LEARNED_PER_S + 1


def test_the_next_run_goes_on_from_what_was_saved(tmp_path: Path) -> None:
    first = HeldClocks(tmp_path / "clocks", lambda: 0.0)
    first.observe(call(1))
    first.save()

    assert len(first.history.pairs()) == 1
    assert HeldClocks(tmp_path / "clocks", lambda: 0.0).history.pairs() == first.history.pairs()


def test_nothing_known_is_nothing_saved(tmp_path: Path) -> None:
    HeldClocks(tmp_path / "clocks", lambda: 0.0).save()

    assert [*tmp_path.iterdir()] == []


def test_a_file_that_cannot_be_read_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "clocks").write_bytes(b"of a later version")
    clocks = HeldClocks(tmp_path / "clocks", lambda: 0.0)
    clocks.observe(call(1))
    clocks.save()

    assert (tmp_path / "clocks").read_bytes() == b"of a later version"
    assert "it stays as it is" in caplog.text


def test_where_nothing_can_be_written_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = HeldClocks(tmp_path / "missing" / "clocks", lambda: 0.0)
    clocks.observe(call(1))
    clocks.save()

    assert "what was learned is not kept" in caplog.text


def test_nobody_learns_while_it_is_saved_and_nobody_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learned: list[bytes]
) -> None:
    begun, go_on = Event(), Event()

    def write(_state: ClockState, _history: ClockHistory) -> bool:
        begun.set()
        return go_on.wait(WAIT_S)

    monkeypatch.setattr(ClockState, "write", write)
    clocks = HeldClocks(tmp_path / "clocks", lambda: 0.0)
    clocks.observe(call(1))
    saving = Thread(target=clocks.save)
    saving.start()
    assert begun.wait(WAIT_S)
    clocks.observe(call(2))
    assert len(learned) == 1
    go_on.set()
    saving.join()
    clocks.observe(call(3))

    assert len(learned) == 2
