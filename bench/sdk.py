"""What the SDK adds to a streamed call and to each chunk of it, beside the same call without it.

    per call    with less without, for calls of two chunks: seven phases and hardly any stream
    per chunk   the same for calls of many chunks, less what a call costs, over the chunks

With and without run in turn in one process: the one is instrumented just before it is timed, the
other uninstrumented. Garbage is collected before each turn; what the libraries hold for good is
frozen out of that, so that each turn pays for the garbage of its own calls.

All of it is done twice: around a library that does nothing, which shows what our code takes by
itself, and around openai's client, which shows what it takes among somebody else's.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

import llmlat_otel
from bench.bare_library import AsyncBareChat, BareChat, bare_instrumentor
from bench.chat import AsyncChat, Chat, SyncChat
from bench.otel_spans import plain_maker, runtime_of, spans_of
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.timing import Contender, interleaved, median_difference
from llmlat_otel.core.runtime import Runtime, running
from llmlat_otel.settings import PhasesMode

SUMMARY: Final = "CPU that the SDK adds per call and per streamed chunk, sync and async"

MANY_CHUNKS: Final = 400
FEW_CHUNKS: Final = 2

_MODES: Final = {"attributes": PhasesMode.ATTRIBUTES, "spans": PhasesMode.SPANS}
_CALL_LIMITS_US: Final = {"attributes": 180, "spans": 320}
_CHUNK_LIMIT_US: Final = 2
_WITHOUT: Final = "without"
_FLOOR: Final = "two clock reads"
_WARM_UPS: Final = 2


@dataclass(frozen=True, slots=True)
class _Effort:
    """How many rounds of how many calls, and rounds of one long stream."""

    rounds: int
    calls: int
    streams: int


_FULL: Final = _Effort(rounds=31, calls=40, streams=101)
_QUICK: Final = _Effort(rounds=5, calls=20, streams=9)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A library, and how its calls come to be timed.

    Attributes:
        name: for the tables.
        make: the program, for streams of so many chunks.
        instrument: has the calls timed.
        uninstrument: puts the library back.
    """

    name: str
    make: Callable[[int], Chat]
    instrument: Callable[[], None]
    uninstrument: Callable[[], None]

    def without(self, chat: Chat, work: Callable[[], None]) -> Contender:
        """A work of the chat without us."""

        def prepare() -> None:
            self.uninstrument()
            chat.call(_WARM_UPS)

        return Contender(work, prepare)

    def within(self, runtime: Runtime, chat: Chat, work: Callable[[], None]) -> Contender:
        """A work of the chat, timed by us."""

        def prepare() -> None:
            self.instrument()
            with running(runtime):
                chat.call(_WARM_UPS)

        def timed() -> None:
            with running(runtime):
                work()

        return Contender(timed, prepare)

    def with_plain_spans(self, mode: PhasesMode, chat: Chat, calls: int) -> tuple[Contender, int]:
        """The calls without us, each followed by OTel's making of the same spans; how many."""
        self.instrument()
        spans = spans_of(mode, lambda: chat.call(1))
        make = plain_maker(spans)

        def call_and_make() -> None:
            for _ in range(calls):
                chat.call(1)
                make()

        return self.without(chat, call_and_make), len(spans)


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    effort = _QUICK if quick else _FULL
    tables: list[Table] = []
    goals: list[Goal] = []
    for setting in _settings():
        with _settled(setting):
            per_call, call_us = _per_call(setting, effort, progress)
            per_chunk, chunk_us = _per_chunk(setting, effort, progress, call_us["attributes"])
        tables += per_call, per_chunk
        goals += _goals(setting.name.replace(" ", "_"), call_us, chunk_us)
    return Report("sdk", tables, goals)


def _settings() -> list[_Setting]:
    bare = bare_instrumentor()
    ours = (llmlat_otel.instrument, llmlat_otel.uninstrument)
    return [
        _Setting("sync", BareChat, bare.instrument, bare.uninstrument),
        _Setting("async", AsyncBareChat, bare.instrument, bare.uninstrument),
        _Setting("sync openai", SyncChat, *ours),
        _Setting("async openai", AsyncChat, *ours),
    ]


def _goals(name: str, call_us: dict[str, float], chunk_us: float) -> list[Goal]:
    calls = [
        Goal(f"sdk_call_{mode}_{name}", call_us[mode], limit, "us")
        for mode, limit in _CALL_LIMITS_US.items()
    ]
    return [*calls, Goal(f"sdk_chunk_{name}", chunk_us, _CHUNK_LIMIT_US, "us")]


@contextmanager
def _settled(setting: _Setting) -> Iterator[None]:
    """Keep what is there for good out of the collections; leave the library as it was."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        setting.uninstrument()
        gc.unfreeze()


def _per_call(
    setting: _Setting, effort: _Effort, progress: Progress
) -> tuple[Table, dict[str, float]]:
    """What one call costs more, in µs by mode; with metrics, and OTel's own spans, beside it."""
    chat, calls = setting.make(FEW_CHUNKS), effort.calls

    def work() -> None:
        chat.call(calls)

    contenders = {_WITHOUT: setting.without(chat, work)}
    spans: dict[str, int] = {_WITHOUT: 0}
    for name, mode in _MODES.items():
        plain, metered = f"only OTel's spans: {name}", f"{name} and metrics"
        contenders[plain], count = setting.with_plain_spans(mode, chat, calls)
        contenders[name] = setting.within(runtime_of(mode), chat, work)
        contenders[metered] = setting.within(runtime_of(mode, metrics=True), chat, work)
        spans |= dict.fromkeys((plain, name, metered), count)
    label = f"sdk, {setting.name}, calls"
    taken = interleaved(contenders, progress.rounds(label, effort.rounds))
    total_us, added_us = _us(taken, calls)
    rows: list[list[Cell]] = [
        [name, spans[name], total, added_us.get(name, ""), total / total_us[_WITHOUT]]
        for name, total in total_us.items()
    ]
    columns = ["phases", "spans", "µs", "added µs", "ratio"]
    heading = f"{setting.name}: CPU per call of {FEW_CHUNKS} chunks, medians"
    return Table(heading, columns, rows), added_us


def _per_chunk(
    setting: _Setting, effort: _Effort, progress: Progress, call_us: float
) -> tuple[Table, float]:
    """What one chunk costs more, in µs."""
    chat = setting.make(MANY_CHUNKS)
    contenders = {
        _WITHOUT: setting.without(chat, lambda: chat.call(1)),
        _FLOOR: setting.without(chat, lambda: chat.call_and_stamp(1)),
        "attributes": setting.within(runtime_of(PhasesMode.ATTRIBUTES), chat, lambda: chat.call(1)),
    }
    label = f"sdk, {setting.name}, chunks"
    taken = interleaved(contenders, progress.rounds(label, effort.streams))
    total_us, added_us = _us(taken, MANY_CHUNKS)
    added_us["attributes"] -= call_us / MANY_CHUNKS
    rows: list[list[Cell]] = [
        [name, total, added_us.get(name, ""), total / total_us[_WITHOUT]]
        for name, total in total_us.items()
    ]
    columns = ["phases", "µs", "added µs", "ratio"]
    heading = f"{setting.name}: CPU per chunk of a stream of {MANY_CHUNKS}, medians"
    return Table(heading, columns, rows), added_us["attributes"]


def _us(taken: dict[str, list[int]], count: int) -> tuple[dict[str, float], dict[str, float]]:
    """Of one of so many: all that it takes, and what it takes beyond `without`."""
    total = {name: median(times) / 1e3 / count for name, times in taken.items()}
    added = {
        name: median_difference(times, taken[_WITHOUT]) / 1e3 / count
        for name, times in taken.items()
        if name != _WITHOUT
    }
    return total, added
