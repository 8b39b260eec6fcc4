"""The guard around our own work: a fault in it is counted and noted, and never reaches the user."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")

TARGETS_MAX: Final = 100
"""Faults are told apart for so many targets: some are named by the application."""

_OTHERS: Final = "others"
_LONGEST: Final = 200
_PACKAGE: Final = __name__.partition(".")[0]

_SPEAK_OF_CODE: Final = (AttributeError, ImportError, NameError, RuntimeError, TypeError)
"""Kinds of errors whose messages name code; those of others repeat values, a user's among them."""

_logger = logging.getLogger(_PACKAGE)
_faults: Counter[str] = Counter()
_firsts: dict[str, str] = {}


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


def replaced(target: str, thing: T, work: Callable[..., T | None], *args: object) -> T:
    """What our own work makes of a thing; the thing itself if it failed, or made nothing of it.

    Args:
        target: See `guarded`.
        thing: What there is without us.
        work: Called with the thing and `args`.
        args: Passed to `work`.
    """
    made = guarded(target, work, thing, *args)
    return thing if made is None else made


def faults() -> Mapping[str, int]:
    """Faults of our own so far, by target."""
    return dict(_faults)


def first_faults() -> Mapping[str, str]:
    """What the first fault of each target was, and where in our code; nothing that users wrote."""
    return dict(_firsts)


def note_fault(target: str, fault: Exception) -> None:
    """Count a fault of ours; the first of a target is noted in the log, at debug."""
    with suppress(Exception):  # A handler or filter of the application's may raise.
        _note(target, fault)


def _note(target: str, fault: Exception) -> None:
    if target not in _faults and len(_faults) >= TARGETS_MAX:
        target = _OTHERS
    _faults[target] += 1
    if _faults[target] == 1:
        _firsts[target] = _described(fault)
        _logger.debug("timing %s failed; further faults are only counted", target, exc_info=fault)


def _described(fault: Exception) -> str:
    said = type(fault).__qualname__
    if isinstance(fault, _SPEAK_OF_CODE) or type(fault).__module__.startswith(_PACKAGE):
        said = traceback.format_exception_only(type(fault), fault)[-1].strip()[:_LONGEST]
    return f"{said}{_place(fault)}"


def _place(fault: Exception) -> str:
    """The innermost line of ours that it has passed."""
    place, step = "", fault.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__"))
        if module.startswith(f"{_PACKAGE}.") and module != __name__:
            place = f" ({module.partition('.')[2]}:{step.tb_lineno})"
        step = step.tb_next
    return place
