"""Offsets as people read them: signed or in words, as exact as they are wide, rounded outwards.

[4 980 123 456, 5 009 876 543] ns  ->  +4.98 s .. +5.01 s      4.98 s to 5.01 s ahead of
"""

from __future__ import annotations

from typing import Final

from llmlat_processor.model import Interval
from llmlat_processor.views.wording.plain import MICRO

UNITS: Final = ((10**9, "s"), (10**6, "ms"), (10**3, ""), (1, "ns"))
"""Nanoseconds of each; how microseconds are written depends on where."""

ROUNDED_BY: Final = 50
"""Rounding makes an interval wider by at most one of so many parts of it."""

DIGITS: Final = 3
"""Of an end that stands alone."""


def interval(known: Interval, micro: str = MICRO) -> str:
    """`+4.98 s .. +5.01 s`, `at most +12 ms`, `at least -3 ms`, or nothing.

    What is said contains the interval: the low end is rounded down and the high end up.
    """
    low, high = known
    if low is not None and high is not None:
        if low == high:
            return offset(low, micro)
        low, high, step = _both(low, high)
        unit = _unit(max(abs(low), abs(high)))
        return " .. ".join(_written(end, step, unit, micro) for end in (low, high))
    if high is not None:
        return f"at most {_at(*_up(high, _step_of(high)), micro)}"
    if low is not None:
        return f"at least {_at(*_down(low, _step_of(low)), micro)}"
    return ""


def ahead(known: Interval, micro: str = MICRO, step: int = 0) -> str:
    """`4.98 s to 5.01 s ahead of`, `at least 3 ms behind`, or nothing: one clock, before another.

    Args:
        known: how far the one is ahead; what is said contains it, as in `interval`.
        micro: how microseconds are written.
        step: to which multiple an end that stands alone is rounded; 0 for three digits of it.
    """
    low, high = known
    if low is not None and high is not None:
        return _between(low, high, micro)
    if high is not None:
        end, step = _up(high, step or _step_of(high))
        if not end:
            return "not ahead of"
        side = "at least {} behind" if end < 0 else "at most {} ahead of"
    elif low is not None:
        end, step = _down(low, step or _step_of(low))
        if not end:
            return "not behind"
        side = "at least {} ahead of" if end > 0 else "at most {} behind"
    else:
        return ""
    return side.format(_at(abs(end), step, micro).lstrip("+"))


def _between(low: int, high: int, micro: str) -> str:
    if low == high == 0:
        return "level with"
    if low == high:
        return f"{offset(abs(low), micro).lstrip('+')} {'behind' if low < 0 else 'ahead of'}"
    low, high, step = _both(low, high)
    near, far = sorted((abs(low), abs(high)))
    unit = _unit(far)
    if low < 0 < high:
        behind, before = (_written(abs(end), step, unit, micro).lstrip("+") for end in (low, high))
        return f"between {behind} behind and {before} ahead of"
    nearest, farthest = (_written(end, step, unit, micro).lstrip("+") for end in (near, far))
    return f"{nearest} to {farthest} {'behind' if low < 0 else 'ahead of'}"


def offset(value_ns: int, micro: str = MICRO) -> str:
    """One offset with its sign, exact: `+6.7 s`."""
    step = 1
    while value_ns and value_ns % (step * 10) == 0:
        step *= 10
    return _at(value_ns, step, micro)


def _both(low: int, high: int) -> tuple[int, int, int]:
    """Both ends rounded outwards, and to which step."""
    step = _step(low, high)
    return _down(low, step)[0], _up(high, step)[0], step


def _up(value: int, step: int) -> tuple[int, int]:
    return -(-value // step) * step, step


def _down(value: int, step: int) -> tuple[int, int]:
    return value // step * step, step


def _step(low: int, high: int) -> int:
    """The coarsest power of ten to which both ends may be rounded outwards."""
    width = high - low
    step = _power(len(str(max(abs(low), abs(high)))))
    while step > 1:
        wider = -(-high // step) * step - low // step * step - width
        if wider * ROUNDED_BY <= width:
            return step
        step //= 10
    return 1


def _step_of(value: int) -> int:
    return _power(len(str(abs(value))) - DIGITS)


def _power(exponent: int) -> int:
    return int(10 ** max(0, exponent))


def power_below(value: int) -> int:
    """The greatest power of ten that is not more than a value; at least 1."""
    return _power(len(str(value)) - 1)


def _unit(magnitude: int) -> int:
    return next((scale for scale, _ in UNITS if magnitude >= scale), 1)


def _at(value: int, step: int, micro: str) -> str:
    return _written(value, step, _unit(abs(value)), micro) if value else "0"


def _written(value: int, step: int, unit: int, micro: str) -> str:
    """The value in a unit, with the decimals that its step has."""
    places = max(0, len(str(unit)) - len(str(step)))
    whole, rest = divmod(abs(value), unit)
    sign = "-" if value < 0 else "+" if value > 0 else ""
    decimals = f".{rest * 10**places // unit:0{places}d}" if places else ""
    name = dict(UNITS)[unit] or micro
    return f"{sign}{whole:,}{decimals} {name}"
