"""One program, timed by one instrumentation at a time, and what each adds to it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.chat import Chat
from bench.instrumentations import Instrumentation
from bench.otel_spans import plain_maker, spans_of
from bench.report import Cell, Table
from bench.timing import Contender, median_difference
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import PhasesMode

WITHOUT: Final = "without"
FLOOR: Final = "two clock reads"
MODES: Final = {"attributes": PhasesMode.ATTRIBUTES, "spans": PhasesMode.SPANS}
CALL_LIMITS_US: Final = {"attributes": 180, "spans": 320}
CHUNK_LIMIT_US: Final = 2

MANY_CHUNKS: Final = 400
FEW_CHUNKS: Final = 2

_WARM_UPS: Final = 2


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rounds of how many calls, and rounds of one long stream."""

    rounds: int
    calls: int
    streams: int


class Turns:
    """A program, and the instrumentation that is in at the moment.

    Args:
        chat: the program.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._within: Instrumentation | None = None

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Keep what is there for good out of the collections; leave the library as it was."""
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            self._change(None)
            gc.unfreeze()

    def _change(self, instrumentation: Instrumentation | None) -> None:
        if self._within is not None:
            self._within.take_out()
        if instrumentation is not None:
            instrumentation.put_in()
        self._within = instrumentation

    def of(
        self,
        instrumentation: Instrumentation | None,
        work: Callable[[], object],
        runtime: Runtime | None = None,
    ) -> Contender:
        """A work of the program while an instrumentation is in.

        Args:
            instrumentation: the one; none at all if None.
            work: what is timed.
            runtime: the SDK's, where it is ours.
        """

        def prepare() -> None:
            self._change(instrumentation)
            with _running(runtime):
                self._chat.call(_WARM_UPS)

        def timed() -> None:
            with _running(runtime):
                work()

        return Contender(timed, prepare)

    def of_plain_spans(
        self, ours: Instrumentation, mode: PhasesMode, calls: int
    ) -> tuple[Contender, int]:
        """Calls without us, each followed by OTel's making of the same spans; how many of them."""
        self._change(ours)
        spans = spans_of(mode, lambda: self._chat.call(1))
        make = plain_maker(spans)

        def call_and_make() -> None:
            for _ in range(calls):
                self._chat.call(1)
                make()

        return self.of(None, call_and_make), len(spans)


def _running(runtime: Runtime | None) -> AbstractContextManager[None]:
    return nullcontext() if runtime is None else running(runtime)


@dataclass(frozen=True, slots=True)
class Added:
    """What works take, in µs for one of the calls or chunks in them.

    Attributes:
        total: all of it, by name.
        beyond: what it takes beyond the first one, `WITHOUT`.
    """

    total: Mapping[str, float]
    beyond: Mapping[str, float]

    @classmethod
    def of(cls, taken: Mapping[str, list[int]], count: int) -> Added:
        """Out of the rounds of works that each hold so many."""
        base = taken[WITHOUT]
        return cls(
            {name: median(times) / 1e3 / count for name, times in taken.items()},
            {
                name: median_difference(times, base) / 1e3 / count
                for name, times in taken.items()
                if times is not base
            },
        )

    def of_chunks(self, calls: Added) -> Added:
        """Out of one long stream each, and out of calls that hardly have any: per chunk."""
        beyond = {
            name: (added - calls.beyond[name]) / (MANY_CHUNKS - FEW_CHUNKS)
            for name, added in self.beyond.items()
        }
        return Added({name: total / MANY_CHUNKS for name, total in self.total.items()}, beyond)

    def table(self, heading: str, first: str, spans: Mapping[str, int] | None = None) -> Table:
        """Rows in the order of measurement.

        Args:
            heading: of the table.
            first: heads the names.
            spans: how many spans each makes.
        """
        rows: list[list[Cell]] = [
            [
                name,
                *([] if spans is None else [spans.get(name, 0)]),
                total,
                self.beyond.get(name, ""),
                total / self.total[WITHOUT],
            ]
            for name, total in self.total.items()
        ]
        columns = [first, *([] if spans is None else ["spans"]), "µs", "added µs", "ratio"]
        return Table(heading, columns, rows)
