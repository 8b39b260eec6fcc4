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


def seconds(duration_ns: int) -> float:
    """Double seconds, rounded to the microsecond."""
    return round(duration_ns / 1e9, 6)


def cut(text: str) -> str:
    """As much of a text as every backend keeps; what cannot be encoded is a question mark."""
    if len(text) * 4 <= MOST_TEXT_BYTES:
        return text
    return text.encode(errors="replace")[:MOST_TEXT_BYTES].decode(errors="ignore")
