"""How long aligning the clocks of a large trace takes, and how much many pairs of clocks hold."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from random import Random
from statistics import median
from typing import Final

from bench.domains import across
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.timing import Contender, Work, collecting_as_the_command_does, interleaved
from llmlat_processor.clock_history import ClockHistory, HistorySettings, to_bytes
from llmlat_processor.model import Message, Trace
from llmlat_processor.stages.align_clocks import align_clocks

SUMMARY: Final = "align_clocks alone on 8 and 1,000 clocks; what is kept of 10,000 pairs of clocks"

_SPANS: Final = 10_000
_DOMAINS: Final = {
    "clocks_10k_8_domains": (8, 3),
    "clocks_1000_domains": (1_000, 3),
    "every other span": (8, 0),
}
"""Clocks, and spans of its own in each server; the last has as many calls as there can be."""

_LIMITS_MS: Final = {"clocks_10k_8_domains": 60, "clocks_1000_domains": 500}
_PAIRS: Final = 10_000
_LIMIT_MIB: Final = 64
_MS: Final = 1_000_000
_S: Final = 1_000 * _MS


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    progress.note("clocks: building the traces")
    traces = {name: across(_SPANS, *shape) for name, shape in _DOMAINS.items()}
    works = {name: Contender(_aligning(trace)) for name, trace in traces.items()}
    calls = list(_calls(2_000))
    works["learn"] = Contender(lambda: _learn(calls))
    with collecting_as_the_command_does():
        taken = interleaved(works, progress.rounds("clocks", 3 if quick else 15))
    ms = {name: median(times) / 1e6 for name, times in taken.items()}
    aligned = {name: align_clocks(trace).clocks for name, trace in traces.items()}
    rows: list[list[Cell]] = [
        [
            name,
            _DOMAINS[name][0],
            len(clocks.messages),
            clocks.left_out,
            ms[name],
            min(taken[name]) / 1e6,
        ]
        for name, clocks in aligned.items()
    ]
    columns = ["trace", "clocks", "messages", "left out", "median ms", "best ms"]
    pairs = _PAIRS // 50 if quick else _PAIRS // 5
    progress.note(f"clocks: filling {pairs:,} pairs")
    mib, saved = size_of_state(pairs)
    per_pair_kib = mib * 1024 / pairs
    state: list[list[Cell]] = [[f"{pairs:,} pairs, full", mib, per_pair_kib, saved / (1 << 20)]]
    goals = [Goal(name, ms[name], limit, "ms") for name, limit in _LIMITS_MS.items()]
    goals.append(Goal("clock_state_10k_pairs", per_pair_kib * _PAIRS / 1024, _LIMIT_MIB, "MiB"))
    return Report(
        "clocks",
        [
            Table(f"align_clocks alone on {_SPANS:,} spans, CPU time", columns, rows),
            Table("clocks across traces, held", ["", "MiB", "KiB/pair", "saved MiB"], state),
        ],
        goals,
        [
            f"{_PAIRS:,} pairs hold {_PAIRS // pairs} times that: no pair shares its bounds",
            f"learned from one message: {ms['learn'] * 1e3 / (2 * len(calls)):.1f} µs",
        ],
    )


def _aligning(trace: Trace) -> Work:
    return lambda: align_clocks(trace)


def _calls(count: int) -> Iterator[tuple[Message, Message]]:
    """Calls every 100 ms with ways of up to 3 ms, over an offset that grows by 100 ppm."""
    random = Random(1)
    for number in range(count):
        at_ns = number * 100 * _MS
        ahead_ns = 5 * _S + at_ns // 10_000
        there, back = (random.randrange(_MS // 10, 3 * _MS) for _ in range(2))
        done_ns = at_ns + 40 * _MS
        yield (
            Message("app", "engine", at_ns, at_ns + there + ahead_ns, 0, 0, 0, b"a" * 8, b"b" * 8),
            Message(
                "engine", "app", done_ns + ahead_ns, done_ns + back, 0, 0, 0, b"b" * 8, b"a" * 8
            ),
        )


def _learn(calls: list[tuple[Message, Message]]) -> None:
    history = ClockHistory()
    for number, messages in enumerate(calls):
        history.learn(number.to_bytes(16, "big"), messages)


def size_of_state(pairs: int) -> tuple[float, int]:
    """MiB that pairs take which hold as much as they may, and bytes of them when saved."""
    gc.collect()
    tracemalloc.start()
    history = ClockHistory()
    settings = history.settings
    for number in range(pairs):
        _fill(
            history, f"domain-{number:08}-of-an-app", f"domain-{number:08}-of-an-engine", settings
        )
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / (1 << 20), len(to_bytes(history))


def _fill(history: ClockHistory, first: str, second: str, settings: HistorySettings) -> None:
    """Both windows to the last bound on each side, and as many odd traces as are held."""
    step_ns = settings.window_ns // settings.bounds
    trace_id = history.evicted.to_bytes(8, "big") + len(history.known).to_bytes(8, "big")
    services = {first: ["adviser"], second: ["vllm"]}
    messages = [
        message
        for at_ns in range(0, 2 * settings.window_ns, step_ns)
        for message in (
            Message(first, second, at_ns, at_ns + 10 * _S, 0, 0, 0, b"a" * 8, b"b" * 8),
            Message(second, first, at_ns, at_ns + 10 * _S, 0, 0, 0, b"b" * 8, b"a" * 8),
        )
    ]
    history.learn(trace_id, messages, services)
    for number in range(settings.held):
        # Each contradicts what is known, and the one before it, so that all of them are held.
        ahead_ns = (number + 1) * 100 * _S
        odd = [
            Message(first, second, 0, ahead_ns + _S, 0, 0, 0, b"a" * 8, b"b" * 8),
            Message(second, first, ahead_ns, _S, 0, 0, 0, b"b" * 8, b"a" * 8),
        ]
        history.learn(number.to_bytes(16, "big"), odd, services)
