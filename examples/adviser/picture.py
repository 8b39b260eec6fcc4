"""Finds llmlat's picture of a trace in its output, and what it says dominated each path."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["picture_in", "verdict"]

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_END = re.compile(r"^\d+ spans received", re.MULTILINE)
_BEGIN = re.compile(r"(?:\x1b\[[0-9;]*m)*trace [0-9a-f]{32}")
# "The path to the end: 6.31 s", and below it "decode adviser 2.90 s (46 %), queue adviser ..."
_PATH = re.compile(r"The path to (?P<goal>.+?): (?P<whole>.+)\n\s*(?P<leader>.+?\))")


def picture_in(output: str) -> str:
    """The picture of an output, without the instructions above it and the books below it."""
    begin, end = _BEGIN.search(output), _END.search(output)
    return output[begin.start() if begin else 0 : end.start() if end else len(output)]


def verdict(picture: str) -> Iterator[str]:
    """One line a path: its goal, its length, the phase that took the largest part of it."""
    for path in _PATH.finditer(_COLOUR.sub("", picture)):
        yield f"To {path['goal']}: {path['whole'].strip()}, dominated by {path['leader']}."
