"""Nothing grows: memory, threads and references, over many calls and many abandoned streams.

Most calls go to a library that does nothing, since ours is what may grow; some of each kind go to
openai's client. They are made in ten parts, each with calls of every kind; what there is after the
first part is compared with what there is after the last. Phases are spans, to a batch processor
whose exporter drops them: openai's all of them, the others' from 1 ms on, as by default.
"""

from __future__ import annotations

import _thread
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

from bench import leaving
from bench.bare_library import bare_instrumentor
from bench.instrumentations import OURS
from bench.leaving import Watch
from bench.otel_spans import Nowhere, dropping_provider, runtime_of
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import PhasesMode

SUMMARY: Final = "nothing grows over 100,000 calls and 10,000 abandoned streams"

Program = Callable[[int, Watch], None]

_PARTS: Final = 10
_OURS: Final = "llmlat_otel"
_PAGE_KIB: Final = 4
_SETTLED_WITHIN_S: Final = 5

# What the interpreter and the libraries keep of so much work varies by a little; something that
# was kept of each call would be a hundred times as much.
_OBJECTS_LIMIT: Final = 500
_BLOCKS_LIMIT: Final = 2_000
_RESIDENT_LIMIT_KIB: Final = 4_096


@dataclass(frozen=True, slots=True)
class Amount:
    """How many calls, and how many streams that are abandoned; some of each are openai's."""

    calls: int
    openai_calls: int
    abandoned: int
    openai_abandoned: int

    def of_bare(self) -> Mapping[Program, int]:
        """How many calls of the library that does nothing are made in one part, by program."""
        read, dropped = self.calls - self.openai_calls, self.abandoned - self.openai_abandoned
        return {
            leaving.bare: read // 2 // _PARTS,
            leaving.bare_async: read // 2 // _PARTS,
            leaving.bare_dropped: dropped // _PARTS,
        }

    def of_openai(self) -> Mapping[Program, int]:
        """How many of openai."""
        read, dropped = self.openai_calls // 4 // _PARTS, self.openai_abandoned // 2 // _PARTS
        return {
            **dict.fromkeys(_READ, read),
            **dict.fromkeys((leaving.dropped, leaving.dropped_async), dropped),
        }


_READ: Final = (leaving.streamed, leaving.whole, leaving.streamed_async, leaving.whole_async)

_FULL: Final = Amount(100_000, openai_calls=4_000, abandoned=10_000, openai_abandoned=1_000)
_QUICK: Final = Amount(10_000, openai_calls=400, abandoned=1_000, openai_abandoned=200)


class Mark(NamedTuple):
    """What there is at one moment.

    Attributes:
        objects: that the garbage collector knows.
        ours: those of our own classes.
        blocks: of memory that the interpreter has given out.
        resident_kib: memory of the process.
        threads: all of them.
    """

    objects: int
    ours: int
    blocks: int
    resident_kib: int
    threads: int


class Soaked(NamedTuple):
    """What a soak has left behind.

    Attributes:
        early: after the first part.
        late: after the last one.
        alive: what is still there of the user's objects.
        operations: spans of calls that were written.
        asked: calls that were made.
    """

    early: Mark
    late: Mark
    alive: list[str]
    operations: int
    asked: int


class _Operations(SpanProcessor):
    """Counts the spans of calls."""

    count = 0

    def on_end(self, span: ReadableSpan) -> None:
        if span.kind is SpanKind.CLIENT:
            self.count += 1


def run(progress: Progress, *, quick: bool) -> Report:
    """Soak.

    Args:
        progress: is told the parts.
        quick: whether a tenth of the calls will do.
    """
    amount = _QUICK if quick else _FULL
    soaked = soak(amount, progress.rounds("soak", _PARTS))
    early, late = soaked.early, soaked.late
    rows: list[list[Cell]] = [
        [name, before, after, after - before]
        for name, before, after in zip(Mark._fields, early, late, strict=True)
    ]
    columns = ["", "after the first tenth", "at the end", "grown by"]
    heading = f"{amount.calls:,} calls, {amount.abandoned:,} abandoned streams"
    goals = [
        Goal("soak_objects", late.objects - early.objects, _OBJECTS_LIMIT, ""),
        Goal("soak_our_objects", late.ours - early.ours, 0, ""),
        Goal("soak_blocks", late.blocks - early.blocks, _BLOCKS_LIMIT, ""),
        Goal("soak_resident", late.resident_kib - early.resident_kib, _RESIDENT_LIMIT_KIB, "KiB"),
        Goal("soak_threads", late.threads - early.threads, 0, ""),
        Goal("soak_references", len(soaked.alive), 0, ""),
        Goal("soak_spans_missing", abs(soaked.asked - soaked.operations), 0, ""),
    ]
    notes = [f"still there: {kind}, {many:,} times" for kind, many in Counter(soaked.alive).items()]
    return Report("soak", [Table(heading, columns, rows)], goals, notes)


def soak(amount: Amount, parts: Iterator[int]) -> Soaked:
    """Make the calls, instrumented, and look at what is left.

    Args:
        amount: how many.
        parts: the numbers of the parts.
    """
    watch, operations, asked = Watch(), _Operations(), 0
    early: Mark | None = None
    with _instrumented(operations) as provider:
        by_default = runtime_of(PhasesMode.SPANS, provider=provider, phase_min_ns=1_000_000)
        every_phase = runtime_of(PhasesMode.SPANS, provider=provider)
        for _ in parts:
            asked += _run(amount.of_bare(), by_default, watch)
            asked += _run(amount.of_openai(), every_phase, watch)
            early = early or _mark(provider)
        late = _mark(provider)
    return Soaked(early or late, late, watch.alive(), operations.count, asked)


def _run(programs: Mapping[Program, int], runtime: Runtime, watch: Watch) -> int:
    """Run each program; how many calls they made."""
    with running(runtime):
        for program, times in programs.items():
            program(times, watch)
    return sum(programs.values())


@contextmanager
def _instrumented(operations: SpanProcessor) -> Iterator[TracerProvider]:
    bare = bare_instrumentor()
    provider = dropping_provider(operations)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    OURS.put_in()
    bare.instrument()
    try:
        yield provider
    finally:
        bare.uninstrument()
        OURS.take_out()
        provider.shutdown()


def _mark(provider: TracerProvider) -> Mark:
    """What there is once everything that can go has gone."""
    _collect()
    provider.force_flush()
    objects = gc.get_objects()
    ours = sum(str(type(each).__module__).startswith(_OURS) for each in objects)
    return Mark(len(objects), ours, sys.getallocatedblocks(), _resident_kib(), _thread._count())


def _collect() -> None:
    """Twice: what the first collection finds is followed up by a thread of its own."""
    for _ in range(2):
        gc.collect()
        _settle()


def _settle() -> None:
    """Wait for threads that come and go."""
    before, until_s = _thread._count(), time.monotonic() + _SETTLED_WITHIN_S
    while time.monotonic() < until_s:
        time.sleep(0.05)
        before, now = _thread._count(), before
        if before == now:
            return


def _resident_kib() -> int:
    """From the kernel (proc_pid_statm(5)); 0 where it does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB
    except OSError:
        return 0
