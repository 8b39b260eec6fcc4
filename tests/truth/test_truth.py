"""The truth from records: instants of all hosts on one clock, and what a hop took."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth.marks import ARRIVED, ASKED, ENDED, FIRST, LAST, OUTPUT
from tests.truth.scenarios import Clock, Engine, Plan, Scenario
from tests.truth.staging import Seen
from tests.truth.truth import Delay, HostClocks, Truth
from tests.truth.wire import Passage

S = 1_000_000_000
MS = 1_000_000
EPOCH = 1_700_000_000 * S

OURS = Engine()
CLOCKS = {"gateway": Clock(5_000), "engine": Clock(10), "tools": Clock(20)}


def test_a_monotonic_clock_is_ahead_by_what_its_namespace_says():
    clocks = HostClocks(5_000, [(5_100 * S, EPOCH)])
    assert clocks.machine_ns(5_100 * S) == 100 * S
    assert clocks.monotonic_ns(100 * S) == 5_100 * S


@pytest.mark.parametrize(
    ("at_s", "wall_s"),
    [(5, -5), (10, 0), (15, 5), (20, 12), (30, 22)],
    ids=["before the first reading", "at it", "between two", "at a step", "after the last"],
)
def test_a_wall_clock_goes_on_from_its_last_reading(at_s, wall_s):
    clocks = HostClocks(0, [(20 * S, EPOCH + 12 * S), (10 * S, EPOCH)])
    assert clocks.wall_ns(at_s * S) == EPOCH + wall_s * S


def test_a_hop_is_from_the_wires_reading_to_the_servers_arrival_and_back():
    """asked: read 110, sent 130, arrived 131; output 600 (engine), sent by its wire 626."""
    truth = Truth(_seen())
    (run,) = truth.runs
    delays = truth.delays(run)
    assert delays["app to gateway"] == Delay(21 * MS + 36 * MS, 20 * MS + 35 * MS)
    assert delays["gateway to engine"] == Delay(12 * MS + 26 * MS, 10 * MS + 25 * MS)
    assert delays["app to tools"] == Delay(16 * MS + 31 * MS, 15 * MS + 30 * MS)
    assert delays["tool"] == Delay(40 * MS)
    assert delays["queue"] == Delay(150 * MS)


def test_offsets_are_between_the_clocks_by_which_spans_are_placed():
    truth = Truth(_seen(Engine(plain=True)))
    (run,) = truth.runs
    assert truth.offset_ns("gateway", run, wall=False) == 5_000 * S
    assert truth.offset_ns("gateway", run, wall=True) == 50 * MS
    assert truth.offset_ns("engine", run, wall=True) == 50 * MS
    assert truth.offset_ns("engine", run, wall=False) == EPOCH + 50 * MS


@pytest.mark.parametrize(("ended_ms", "stalled"), [(244, False), (246, True)])
def test_a_server_that_goes_on_for_long_after_its_answer_is_no_witness(ended_ms, stalled):
    truth = Truth(_seen(ended_ms=ended_ms))
    assert truth.stalled(truth.runs[0]) is stalled


def test_a_stream_is_held_where_decoding_took_longer_than_receiving():
    truth = Truth(_seen())
    assert truth.held_ns(truth.runs[0]) == 150 * MS - 130 * MS


def _seen(engine: Engine = OURS, ended_ms: int = 241) -> Seen:
    """One run: tools 1 and 2 side by side, then request 3; ms on the machine's clock."""
    scenario = Scenario("test", "of it", CLOCKS, engine=engine, plan=Plan(runs=1))
    return Seen(
        scenario,
        Path("spans.pb"),
        {
            "app": [
                _clocks(0, EPOCH),
                {"trace": "aa", "began_ns": 100 * MS, "requests": [1, 2, 3]},
                *_stamps(0, 3, {FIRST: 550, LAST: 680}),
            ],
            "gateway": [
                _clocks(5_000, EPOCH + 50 * MS),
                *_stamps(5_000, 3, {ARRIVED: 131, LAST: 640}),
            ],
            "engine": [
                _clocks(10, EPOCH + 50 * MS),
                *_stamps(10, 3, {ARRIVED: 151, OUTPUT: 600, LAST: 601}),
                *(
                    {"request": 3, "what": w, "ns": 150 * MS}
                    for w in ("queue", "prefill", "decode")
                ),
            ],
            "tools": [
                _clocks(20, EPOCH),
                *_stamps(20, 1, {ARRIVED: 200, LAST: 239, ENDED: ended_ms - 5}),
                *_stamps(20, 2, {ARRIVED: 201, LAST: 240, ENDED: ended_ms}),
                {"request": 1, "what": "tool", "ns": 30 * MS},
                {"request": 2, "what": "tool", "ns": 40 * MS},
            ],
        },
        {
            "gateway": {(3, ASKED): _passage(109, 110, 130), (3, LAST): _passage(1, 641, 676)},
            "engine": {(3, ASKED): _passage(139, 140, 150), (3, LAST): _passage(1, 601, 626)},
            "tools": {(2, ASKED): _passage(185, 185, 200), (2, LAST): _passage(1, 241, 271)},
        },
    )


def _clocks(ahead_s: int, wall_ns: int) -> dict[str, object]:
    return {"monotonic_ns": ahead_s * S, "wall_ns": wall_ns}


def _stamps(ahead_s: int, request: int, at_ms: dict[str, int]) -> list[dict[str, object]]:
    return [
        {"request": request, "what": what, "at_ns": ahead_s * S + at * MS}
        for what, at in at_ms.items()
    ]


def _passage(begun_ms: int, read_ms: int, sent_ms: int) -> Passage:
    return Passage(begun_ms * MS, read_ms * MS, sent_ms * MS)
