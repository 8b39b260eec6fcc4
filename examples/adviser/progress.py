"""Shows on stderr what the demo is doing: a spinner on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.status import Status

__all__ = ["Progress"]


class Progress:
    """One step after the other; a step is over when the next one begins."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._step: str | None = None
        self._since_s = 0.0

    def step(self, what: str) -> None:
        """Begin a step."""
        self._close()
        self._step, self._since_s = what, time.monotonic()
        if self._console.is_terminal:
            self._status = self._console.status(f"{escape(what)} ...", spinner="dots")
            self._status.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._close("[red]stopped[/red]" if kind else "")

    def _close(self, remark: str = "") -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._step is not None:
            spent_s = time.monotonic() - self._since_s
            line = f"[dim]{spent_s:6.1f} s[/dim]  {escape(self._step)} {remark}".rstrip()
            self._console.print(line, highlight=False, soft_wrap=True)
            self._step = None
