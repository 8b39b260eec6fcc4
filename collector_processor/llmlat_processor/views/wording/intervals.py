"""Offsets as people read them: with a sign, as exact as their width is, rounded outwards.

[4 980 123 456, 5 009 876 543] ns  ->  +4.98 s .. +5.01 s
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
        step = _step(low, high)
        ends = (low // step * step, -(-high // step) * step)
        unit = _unit(max(map(abs, ends)))
        return " .. ".join(_written(end, step, unit, micro) for end in ends)
    if high is not None:
        step = _step_of(high)
        return f"at most {_at(-(-high // step) * step, step, micro)}"
    if low is not None:
        step = _step_of(low)
        return f"at least {_at(low // step * step, step, micro)}"
    return ""


def offset(value_ns: int, micro: str = MICRO) -> str:
    """One offset with its sign, exact: `+6.7 s`."""
    step = 1
    while value_ns and value_ns % (step * 10) == 0:
        step *= 10
    return _at(value_ns, step, micro)


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
