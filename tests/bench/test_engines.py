"""The ratios of pairs, and what is said of how sure they are."""

from __future__ import annotations

from bench import engines
from bench.engine_turns import ALONE, STEPS, TIMED
from bench.report import Goal

TAKEN = {
    ALONE: [100.0, 200.0, 400.0],
    TIMED: [101.0, 206.0, 400.0],
    STEPS: [110.0, 212.0, 440.0],
}


def test_a_ratio_is_that_of_a_round() -> None:
    assert engines.ratios(TAKEN, TIMED) == [1.0, 1.01, 1.03]


def test_the_goals_are_told_of_the_medians() -> None:
    assert engines.goals(TAKEN) == [
        Goal("engine_cpu", 1.01, 1.02, "x"),
        Goal("engine_cpu_with_steps", 1.1, 1.05, "x"),
    ]


def test_an_interval_is_as_sure_as_there_are_rounds() -> None:
    first, second = engines.notes(TAKEN, 64)
    assert first == "with the plugin, answers of 64: 1.000 to 1.030 of vLLM alone, sure by 75.0 %"
    assert second.startswith("with each step, answers of 64: 1.060 to 1.100 ")


def test_of_many_rounds_the_outer_ones_say_nothing() -> None:
    """The table of the sign test: of 20 values the 6th and the 15th, by 95.9 %."""
    low, high, sure = engines.interval([float(each) for each in range(1, 21)])
    assert (low, high, round(sure, 1)) == (6.0, 15.0, 95.9)
