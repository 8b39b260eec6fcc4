"""What is known of clocks across traces, for as long as the processor lives and through restarts.

It moves no section of any path: those rest on what one trace proves. It is what `llmlat clocks
--state` reads, and where a clock that was set is found out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

from llmlat_processor.clock_history import ClockHistory, HistorySettings
from llmlat_processor.clock_history.lasting import lasting
from llmlat_processor.clock_state import ClockState
from llmlat_processor.model import AlignedTrace, ExplainedTrace

LEARNED_PER_S: Final = 20
"""Traces of which the clocks are learned in a second: bounds get no tighter for many more."""

BOUNDED: Final = HistorySettings(pairs=2_000)

_logger = logging.getLogger("llmlat_processor")


class HeldClocks:
    """Learns from some of the traces, and keeps what it knows in a file."""

    def __init__(self, path: Path | None, now_s: Callable[[], float]) -> None:
        """Go on from what an earlier run has learned.

        Args:
            path: of the file; None keeps nothing.
            now_s: a clock in seconds that never runs backwards.
        """
        self._state = None if path is None else ClockState(str(path), _warn)
        known = ClockHistory(BOUNDED) if self._state is None else self._state.read(BOUNDED)
        self._is_kept = self._state is not None and known is not None
        self.history = ClockHistory(BOUNDED) if known is None else known
        self._now_s = now_s
        self._second = -1
        self._learned = 0
        self._lock = Lock()

    def observe(self, explained: ExplainedTrace) -> None:
        """Learn from a trace, unless enough was learned in this second."""
        aligned = explained.aligned
        if not aligned.clocks.messages or not self._has_time():
            return
        if not self._lock.acquire(blocking=False):
            return  # it is being saved, and nobody waits for a disk
        try:
            self._learn(aligned)
        finally:
            self._lock.release()

    def _learn(self, aligned: AlignedTrace) -> None:
        services: dict[str, set[str]] = {}
        for span, domain in zip(aligned.trace.operations, aligned.domains, strict=True):
            services.setdefault(domain, set()).add(span.resource.service)
        names = {domain: sorted(found) for domain, found in services.items()}
        self.history.learn(aligned.trace.trace_id, lasting(aligned), names)

    def save(self) -> None:
        """Put it where the next run finds it; what goes wrong is logged."""
        if self._state is not None and self._is_kept and self.history.known:
            with self._lock:
                self._state.write(self.history)

    def _has_time(self) -> bool:
        second = int(self._now_s())
        if second != self._second:
            self._second, self._learned = second, 0
        self._learned += 1
        return self._learned <= LEARNED_PER_S


def _warn(words: str) -> None:
    _logger.warning("%s", words)
