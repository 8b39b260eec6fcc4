"""Tells on a terminal what long work is at: one line that is overwritten; elsewhere nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Final, TextIO

EVERY_S: Final = 0.1

_START_OF_LINE: Final = "\r\x1b[K"


class Progress:
    """The last line of a terminal, which is gone before anything else is written there."""

    def __init__(self, err: TextIO, now_s: Callable[[], float]) -> None:
        """Write on `err`, by a clock in seconds that never runs backwards."""
        self._err = err
        self._now_s = now_s
        is_terminal = err is not None and err.isatty()  # it is None where it was closed
        self._is_shown = is_terminal and os.environ.get("TERM") != "dumb"
        self._is_drawn = False
        self._next_s = 0.0

    def at(self, words: str) -> None:
        """Say what is being done now; most of many calls are passed over."""
        if not self._is_shown or (now_s := self._now_s()) < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        self._is_drawn = True
        self._write(_START_OF_LINE + words[: shutil.get_terminal_size().columns - 1])

    def clear(self) -> None:
        """Take the line away."""
        if self._is_drawn:
            self._is_drawn = False
            self._next_s = 0.0
            self._write(_START_OF_LINE)

    def tell(self, line: str) -> None:
        """Write a line that stays."""
        self.clear()
        print(line, file=self._err)

    def _write(self, words: str) -> None:
        self._err.write(words)
        self._err.flush()
