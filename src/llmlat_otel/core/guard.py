"""The guard around our own work: a fault in it is counted and noted, and never reaches the user."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

_logger = logging.getLogger("llmlat_otel")
_faults: Counter[str] = Counter()


def guarded(target: str, work: Callable[..., T], *args: object) -> T | None:
    """Do our own work for a target; None if it failed.

    Exceptions that are not ours to stop (KeyboardInterrupt, CancelledError) pass.

    Args:
        target: What is being timed: faults are counted by it and logged once for it, at debug.
        work: Does the work with `args`.
        args: Passed to `work`.
    """
    try:
        return work(*args)
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is ours
        note_fault(target, fault)
        return None


def faults() -> Mapping[str, int]:
    """Faults of our own so far, by target."""
    return dict(_faults)


def note_fault(target: str, fault: Exception) -> None:
    """Count a fault of ours; the first of a target is noted in the log, at debug."""
    _faults[target] += 1
    if _faults[target] == 1:
        _logger.debug("timing %s failed; further faults are only counted", target, exc_info=fault)
