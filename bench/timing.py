"""CPU time of works that are compared: side by side in one process, round after round."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import process_time_ns

from llmlat_processor.garbage import relax_collector

Work = Callable[[], object]


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Contender:
    """A work, and what puts the process in its state first (not timed)."""

    work: Work
    prepare: Work = _nothing


@contextmanager
def collecting_as_the_command_does() -> Iterator[None]:
    """Collect garbage as often as `llmlat watch` and `llmlat show` do, and as before afterwards."""
    before = gc.get_threshold()
    relax_collector()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def interleaved(
    contenders: Mapping[str, Contender],
    rounds: Iterable[int],
    clock: Callable[[], int] = process_time_ns,
) -> dict[str, list[int]]:
    """Run every contender once a round, each round beginning with another one.

    Garbage is collected before each run and the collector stays on during it, so that a run pays
    for the garbage that it makes and for no other's.

    Args:
        contenders: by name.
        rounds: the numbers of the rounds.
        clock: CPU time of the process, in ns.

    Returns:
        ns of each round, by name: entries of one index were measured next to each other.
    """
    names = list(contenders)
    taken: dict[str, list[int]] = {name: [] for name in names}
    for number in rounds:
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(_timed(contenders[name], clock))
    return taken


def _timed(contender: Contender, clock: Callable[[], int]) -> int:
    contender.prepare()
    gc.collect()
    start = clock()
    contender.work()
    return clock() - start


def median_difference(taken: Sequence[int], base: Sequence[int]) -> float:
    """Median of what one took beyond the other in the same round, in ns."""
    return median(one - other for one, other in zip(taken, base, strict=True))
