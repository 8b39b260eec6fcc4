"""How what the processor says is written, on the spans of others and on its own.

Whatever adds to a trace follows the same rules: viewers print every digit that they get, and
backends cut texts that are too long.
"""

from __future__ import annotations

from typing import Final

OWN_SCOPE: Final = "llmlat_processor"
"""Instrumentation scope of spans that the processor itself emits; they are not explained again."""

MOST_TEXT_BYTES: Final = 1_999
"""Tempo cuts strings at 2,048 bytes; ours stay below 2,000, cut on a character border."""


_MOST_SCALED: Final = 1e12
_NEARLY_HALF: Final = 0.499


def seconds(duration_ns: int) -> float:
    """Double seconds, rounded to the microsecond."""
    return six_digits(duration_ns / 1e9)


def six_digits(value: float) -> float:
    """A number rounded to six digits after the point, to the bit as `round` does it.

    That goes by way of a text, which takes twice as long and is needed only where a number lies so
    near the middle between two others that the error of a product could tell on which side.
    """
    scaled = value * 1e6
    if 0 < scaled < _MOST_SCALED:
        nearest = int(scaled + 0.5)
        if -_NEARLY_HALF < scaled - nearest < _NEARLY_HALF:
            return nearest / 1e6
    return round(value, 6)


def cut(text: str) -> str:
    """As much of a text as every backend keeps; what cannot be encoded is a question mark."""
    if len(text) * 4 <= MOST_TEXT_BYTES:
        return text
    return text.encode(errors="replace")[:MOST_TEXT_BYTES].decode(errors="ignore")
