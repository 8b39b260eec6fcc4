"""How long `critical_paths` alone takes on traces of extreme size, and how deep it recurses."""

from __future__ import annotations

import sys
from statistics import median
from types import FrameType
from typing import Final

from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.timing import Contender, Work, collecting_as_the_command_does, interleaved
from bench.trees import deep, wide
from llmlat_processor.model import AlignedTrace
from llmlat_processor.stages.critical_path import critical_paths

SUMMARY: Final = "critical_paths alone: 10,000 and 100,000 spans wide, 50,000 deep"

_SIZES: Final = {"wide_10k": 10_000, "wide_100k": 100_000, "deep_50k": 50_000}
_LIMITS_MS: Final = {"wide_10k": 40, "wide_100k": 600}
_MOST_FRAMES: Final = 100
"""Far more than any call chain of the stage, far fewer than the levels of the deep trace."""


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    progress.note("paths: building the traces")
    traces = {
        name: (deep if name.startswith("deep") else wide)(size) for name, size in _SIZES.items()
    }
    contenders = {name: Contender(_work(trace)) for name, trace in traces.items()}
    with collecting_as_the_command_does():
        taken = interleaved(contenders, progress.rounds("paths", 3 if quick else 15))
    ms = {name: median(times) / 1e6 for name, times in taken.items()}
    frames = frames_of(_work(traces["deep_50k"]))
    rows: list[list[Cell]] = [
        [name, size, ms[name], min(taken[name]) / 1e6, ms[name] * 1e3 / size]
        for name, size in _SIZES.items()
    ]
    columns = ["trace", "spans", "median ms", "best ms", "µs/span"]
    goals = [Goal(f"paths_{name}", ms[name], limit, "ms") for name, limit in _LIMITS_MS.items()]
    goals.append(Goal("paths_deep_50k_stack", frames, _MOST_FRAMES, "frames"))
    return Report("paths", [Table("critical_paths alone, CPU time", columns, rows)], goals)


def _work(trace: AlignedTrace) -> Work:
    return lambda: critical_paths(trace)


def frames_of(work: Work) -> int:
    """The most frames that a work has on the stack at once: recursion shows here."""
    depth = deepest = 0

    def watch(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal depth, deepest
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(before)
    return deepest
