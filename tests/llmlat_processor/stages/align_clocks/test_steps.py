"""Steps: a wall clock that parts from the monotonic clock of its own process."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_semconv import attributes as names
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.align_clocks.traces import aligned, told
from tests.llmlat_processor.stages.spans import MS, row


def read(name: str, wall_ms: float, monotonic_ms: float, uncertainty_ms: float = 0) -> Json:
    """A span of a process that reads its monotonic clock beside the wall clock."""
    said: dict[str, Any] = {
        names.LLMLAT_CLOCK_DOMAIN_ID: "D",
        names.LLMLAT_CLOCK_MONOTONIC_START: round(monotonic_ms * MS),
        names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: round(uncertainty_ms * MS),
    }
    return row(name, "R", wall_ms, wall_ms + 1, attributes=said)


ROOT = row("R", None, 0, 9_000)


@pytest.mark.parametrize("step", [2_000, -1_500])
def test_a_step_is_told_with_its_size_and_sign(step: float) -> None:
    trace = aligned(ROOT, read("a", 2_000, 100), read("b", 2_500 + step, 600))
    assert told(trace) == [f"clock_step of b {step:g}"]


@pytest.mark.parametrize("apart", [0, 1, -1])
def test_what_readings_can_be_apart_is_no_step(apart: float) -> None:
    assert told(aligned(ROOT, read("a", 2_000, 100), read("b", 2_500 + apart, 600))) == []


def test_what_an_anchor_says_of_its_uncertainty_is_granted() -> None:
    uncertain = read("b", 2_505, 600, uncertainty_ms=4)
    assert told(aligned(ROOT, read("a", 2_000, 100), uncertain)) == []


def test_a_clock_that_is_slewed_is_not_stepped() -> None:
    assert told(aligned(ROOT, read("a", 2_000, 100), read("b", 6_002, 4_100))) == []


def test_spans_of_one_anchor_show_no_step() -> None:
    assert told(aligned(ROOT, read("a", 2_000, 100), read("b", 2_500, 600))) == []
