"""How clocks over time are drawn: names, open ends, readings without a calendar, what is cut."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import (
    ClocksOverTime,
    Drift,
    KnownClock,
    PairOverTime,
    Step,
    Stretch,
    WallShift,
    Witness,
)
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.views.terminal.clock_intervals import draw_clocks_over_time
from llmlat_semconv.values import FindingKind

S = 10**9
NOW_NS = 1_764_421_200 * S
APP = KnownClock("0f3a9c1e-4b7d", ("adviser",), "laptop", is_monotonic=True)
ENGINE = KnownClock("9b7e2a51-engine", ("vllm",), "gpu-1", is_monotonic=True)
BOOTED = WallShift(NOW_NS, NOW_NS + 100 * S)
STRETCH = Stretch(
    APP.domain,
    ENGINE.domain,
    epoch=0,
    start_ns=0,
    end_ns=120 * S,
    at_ns=7 * S,
    interval=Interval(-95 * S, -94 * S),
    steady=Interval(-95 * S, -94 * S),
    drift=Drift(-1_234, 5_678),
    messages=2,
    traces=1,
)
WITNESS = Witness(b"t" * 16, b"l" * 8, b"a" * 8)
STEP = Step(APP.domain, ENGINE.domain, -1_234_567, 1 * S, 2 * S, (WITNESS,) * 3, (WITNESS,) * 2)


def pair(*stretches: Stretch, shift: WallShift | None = BOOTED) -> PairOverTime:
    shown = stretches or (STRETCH,)
    return PairOverTime(APP, ENGINE, shown, [shift] * len(shown), ())


def drawn(
    *pairs: PairOverTime,
    findings: Sequence[FindingCount] = (),
    left_out: int = 0,
    width: int = 80,
    unicode: bool = True,
    everything: bool = False,
) -> str:
    told = ClocksOverTime(120 * S, 200, 1, pairs or [pair()], findings, {"learned": 2}, left_out)
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(draw_clocks_over_time(told, width, unicode=unicode, everything=everything))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_monotonic_clock_is_told_as_its_wall_clock_and_its_own_beside_it() -> None:
    out = drawn()

    assert "vllm (gpu-1) ahead of (+) or behind (-) adviser (laptop)\n" in out
    assert "2025-11-29 13:00:07  +5 s .. +6 s  1.00 s wide\n" in out
    assert "own clocks -95 s .. -94 s · drift -1.3 .. +5.7 ppm · 2 messages of 1 trace" in out


def test_without_anchors_readings_are_seconds_of_that_clock() -> None:
    out = drawn(pair(shift=None))

    assert "at 7.000 s  -95 s .. -94 s" in out
    assert "as their own clocks read · drift" in out


def test_a_reading_that_no_calendar_has_is_told_in_seconds() -> None:
    assert "at 7.000 s" in drawn(pair(shift=WallShift(-NOW_NS, 0)))


def test_open_ends_and_rates_that_do_not_fit_are_said() -> None:
    one_sided = replace(STRETCH, interval=Interval(None, -94 * S), steady=Interval(None, -94 * S))
    bent = replace(STRETCH, steady=None, drift=None)
    tighter = replace(STRETCH, steady=Interval(-95 * S, -94_500_000_000))
    unknown = replace(STRETCH, interval=Interval(None, None))
    out = drawn(pair(one_sided, bent, tighter, unknown, shift=WallShift(0, 0)))

    assert "at most -94.0 s\n" in out
    assert "no constant rate fits · 2 messages" in out
    assert "at a constant rate -95.0 s .. -94.5 s · drift" in out
    assert "not bounded\n" in out


def test_a_step_says_by_how_much_at_least_and_who_proves_it() -> None:
    few, whole = (drawn(replace(pair(), steps=[STEP]), everything=each) for each in (False, True))

    moved = "vllm (gpu-1) moved back against adviser (laptop) by at least 1.23 ms between"
    assert f"▲ clock_step: {moved} 2025-11-29 13:00:01 and" in " ".join(few.split())
    assert f"trace {WITNESS.trace_id.hex()}" in few
    assert f"span {WITNESS.left.hex()} to {WITNESS.arrived.hex()}" in few
    assert (few.count("trace 74"), whole.count("trace 74")) == (4, 5)
    assert "moved ahead against" in drawn(replace(pair(), steps=[replace(STEP, amount_ns=5)]))


def test_clocks_that_are_called_alike_are_told_apart_by_their_domains() -> None:
    twin = replace(pair(), second=replace(ENGINE, domain="another-engine"))
    out = drawn(pair(), twin)

    assert "vllm (gpu-1, clock 9b7e2a51-engine) ahead of (+) or behind (-) adviser (laptop)" in out
    assert "vllm (gpu-1, clock another-engine) ahead of (+) or behind (-) adviser (laptop)" in out


def test_a_clock_of_no_known_host_is_told_by_the_start_of_its_domain() -> None:
    lost = replace(pair(), second=replace(ENGINE, host="", services=()))

    assert "no service (clock 9b7e2a51-eng…) ahead of" in drawn(lost)
    assert "no service (clock 9b7e2a51-eng~) ahead of" in drawn(lost, unicode=False)


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ((True, True), "of which one or both are monotonic"),
        ((False, True), "of which one or both are monotonic"),
        ((False, False), "wall clocks, the only ones"),
        ((None, False), "which they are is not said"),
    ],
)
def test_it_says_which_clocks_they_are(kinds: tuple[bool | None, bool], says: str) -> None:
    first, second = (
        replace(one, is_monotonic=kind) for one, kind in zip((APP, ENGINE), kinds, strict=True)
    )
    assert says in drawn(replace(pair(), first=first, second=second))


def test_what_is_cut_is_counted_and_all_of_it_is_there_when_asked_for() -> None:
    rows = [FindingCount(FindingKind.CLOCK_STEP, "", f"s{n}", 1) for n in range(25)]
    pairs = [replace(pair(*[STRETCH] * 15), steps=[STEP] * 8)] * 22
    few = drawn(*pairs, findings=rows, left_out=7)
    whole = drawn(*pairs, findings=rows, everything=True)

    for said in (
        "and 2 more pairs of clocks",
        "and 3 more earlier windows of time",
        "and 2 more earlier steps",
        "and 5 more kinds and pairs of services",
        "nothing is said of 7 clocks beyond these",
    ):
        assert said in few
    assert " more " not in whole
    assert "  1  clock_step  s24\n" in whole


def test_of_many_pairs_those_that_were_stepped_are_shown() -> None:
    quiet, stepped = [pair()] * 20, replace(pair(), steps=[STEP])
    assert "clock_step" in drawn(*quiet, stepped)


@pytest.mark.parametrize("width", [45, 60, 80, 120])
def test_no_line_is_wider_than_asked_and_ascii_is_ascii(width: int) -> None:
    stretch = replace(STRETCH, steady=Interval(-94_700_000_001, -94_600_000_003), messages=10**6)
    out = drawn(replace(pair(stretch), steps=[STEP]), width=width, unicode=False)

    assert out.isascii()
    assert max(map(cell_len, out.splitlines())) <= width


def test_names_from_the_wire_cannot_write_on_the_screen() -> None:
    nasty = replace(ENGINE, services=("v\x1b[31m",), host="h\nx")

    out = drawn(replace(pair(), second=nasty))
    assert "\x1b" not in out
    assert "v?[31m (h?x)" in out
