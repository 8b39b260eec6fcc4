"""The end of the process, also of a multiprocessing child's, which leaves without `atexit`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import cache

from llmlat_otel.core.drops import follow_all
from llmlat_otel.core.guard import guarded


class _Departure:
    """What there is to do as this process ends, once."""

    def __init__(self) -> None:
        self.works: list[Callable[[], object]] = []
        self._has_left = False

    def leave(self) -> None:
        """Do it, the last one asked for first, when streams still open have been written."""
        if not self._has_left:
            self._has_left = True
            guarded("exit", follow_all)
            for work in reversed(self.works):
                guarded("exit", work)

    def forked(self) -> None:
        """This is a child: what its parent has to do is not its own."""
        self.works.clear()
        self._has_left = False
        guarded("exit", self._follow_multiprocessing)

    def _follow_multiprocessing(self) -> None:
        """Tell multiprocessing, which forgets what it was told before a child began."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(self, _finalize)

    def finalize(self) -> None:
        """Have multiprocessing call us as it leaves, if this is a child of its making."""
        process, util = (sys.modules.get(f"multiprocessing.{each}") for each in ("process", "util"))
        if process is not None and util is not None and process.parent_process() is not None:
            util.Finalize(None, self.leave, exitpriority=0)


_departure = _Departure()


def when_leaving(work: Callable[[], object]) -> None:
    """Call a function as this process ends; its children have to ask for themselves."""
    _departure.works.append(work)
    _watch()


@cache
def _watch() -> None:
    atexit.register(_departure.leave)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_departure.forked)
    _departure.finalize()  # In a spawned child.


def _finalize(departure: _Departure) -> None:
    departure.finalize()
