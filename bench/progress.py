"""Progress of long work, on a terminal only, and never while something is being timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO


class Progress:
    """Writes one line that replaces itself; in plain text, so NO_COLOR changes nothing.

    There is no thread behind it: a thread would spend CPU time that counts as the benchmark's.
    """

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._shows = out.isatty()

    def rounds(self, label: str, count: int) -> Iterator[int]:
        """The numbers from 0; each is shown when it is taken, and the line is gone at the end."""
        for number in range(count):
            self._replace(f"{label}: round {number + 1} of {count}")
            yield number
        self._replace("")

    def note(self, text: str) -> None:
        """Show what is being done, until the next one."""
        self._replace(text)

    def _replace(self, text: str) -> None:
        if self._shows:
            self._out.write(f"\r\x1b[K{text}")
            self._out.flush()
