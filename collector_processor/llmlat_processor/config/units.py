"""Durations and sizes as they are written in a config file: `1m30s`, `500ms`, `64MiB`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

SECOND_NS: Final = 1_000_000_000

_DURATIONS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3_600 * SECOND_NS,
}
_SIZES: Final = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}

LONGEST_NS: Final = 10**9 * SECOND_NS
"""Thirty years: what is longer is no time that anybody waits."""
LARGEST_BYTES: Final = 1 << 50

DURATION: Final = r"([0-9]{1,20}(\.[0-9]{1,20})?(ns|us|µs|ms|s|m|h))+|0"
SIZE: Final = r"[0-9]{1,20}(\.[0-9]{1,20})?\s?(B|[kK]B|MB|GB|KiB|MiB|GiB|TiB)|[0-9]{1,20}"

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([a-zµ]+)")
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s?([A-Za-z]*)")


def duration_ns(text: str) -> int:
    """Read `10s`, `500ms` or `1m30s`; nanoseconds.

    Raises:
        ValueError: it is none; the message goes on after the text.
    """
    if not re.fullmatch(DURATION, text):
        raise ValueError("is not a duration; write a number and its unit, like 10s, 500ms or 1m30s")
    parts = _PART.findall(text)
    value_ns = sum(Fraction(amount) * _DURATIONS[unit] for amount, unit in parts)
    if value_ns > LONGEST_NS:
        raise ValueError("is longer than anybody waits")
    return round(value_ns)


def size_bytes(text: str) -> int:
    """Read `64MiB`, `4032KiB` or a plain number of bytes.

    Raises:
        ValueError: it is none; the message goes on after the text.
    """
    found = _SIZE.fullmatch(text) if re.fullmatch(SIZE, text) else None
    if found is None:
        raise ValueError("is not a size; write a number and its unit, like 64MiB or 4032KiB")
    value = Fraction(found[1]) * _SIZES[found[2] or "B"]
    if value > LARGEST_BYTES:
        raise ValueError("is larger than any memory or disk")
    return round(value)


def duration_text(value_ns: int) -> str:
    """Write a duration in the largest unit that keeps it a whole number; minutes from ten on."""
    for unit, least in (("h", 2), ("m", 10), ("s", 1), ("ms", 1), ("us", 1)):
        count, rest = divmod(value_ns, _DURATIONS[unit])
        if count >= least and not rest:
            return f"{count}{unit}"
    return f"{value_ns}ns" if value_ns else "0s"


def seconds_text(value_s: float) -> str:
    """The same, of seconds."""
    return duration_text(round(value_s * SECOND_NS))


def size_text(value_bytes: int) -> str:
    """Write a size in the largest unit that keeps it a whole number."""
    for unit in ("GiB", "MiB", "KiB"):
        count, rest = divmod(value_bytes, _SIZES[unit])
        if count and not rest:
            return f"{count}{unit}"
    return f"{value_bytes}B"
