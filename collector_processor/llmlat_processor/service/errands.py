"""What has to be done now and then, in a thread of its own: nothing of it may end the work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, NamedTuple

_logger = logging.getLogger("llmlat_processor")


class Errand(NamedTuple):
    """Something to be done again and again.

    Attributes:
        every_s: how often, in seconds.
        do: does it.
    """

    every_s: float
    do: Callable[[], object]


class Errands:
    """Runs them from the moment it is made; what one raises is logged, and it is tried again."""

    THREAD: Final = "llmlat-errands"

    def __init__(self, *errands: Errand) -> None:
        """Start the thread."""
        self._errands = errands
        self._over = Event()
        self._thread = Thread(target=self._run, name=self.THREAD, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the one that is being done, and do no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        due_s = {errand: time.monotonic() + errand.every_s for errand in self._errands}
        while due_s:
            next_one = min(due_s, key=due_s.__getitem__)
            if self._over.wait(max(0.0, due_s[next_one] - time.monotonic())):
                return
            _done(next_one.do)
            due_s[next_one] = time.monotonic() + next_one.every_s


def _done(errand: Callable[[], object]) -> None:
    try:
        errand()
    except Exception:
        _logger.exception("something that is done now and then has failed; please report this")
