"""Finds llmlat's picture of a trace in its output, and what it says dominated each path."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["picture_in", "verdict"]

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BEGIN = re.compile(r"(?:\x1b\[[0-9;]*m)*trace [0-9a-f]{32}")
# "The path to the end: 6.31 s", and below it "decode adviser 2.90 s (46 %), queue adviser ..."
_PATH = re.compile(r"The path to (?P<goal>.+?): (?P<whole>.+)\n\s*(?P<leader>.+?\))")


def picture_in(output: str) -> str:
    """The output from the picture on, without the instructions above it."""
    begin = _BEGIN.search(output)
    return output[begin.start() :] if begin else output


def verdict(picture: str) -> Iterator[str]:
    """One line a path: its goal, its length, the phase that took the largest part of it."""
    for path in _PATH.finditer(_COLOUR.sub("", picture)):
        yield f"To {path['goal']}: {path['whole'].strip()}, dominated by {path['leader']}."
