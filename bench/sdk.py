"""What the SDK takes by itself, for a streamed call and for each chunk of it, sync and async.

    per call    with less without, for calls of two chunks: seven phases and hardly any stream
    per chunk   the same for one call of many chunks, less what a call costs, over the chunks

With and without run in turn in one process: the one is instrumented just before it is timed, the
other uninstrumented. Garbage is collected before each turn; what the libraries hold for good is
frozen out of that, so that each turn pays for the garbage of its own calls.

The library that is called does nothing. What the same code takes among that of a real client, and
what others take there, is measured by `peers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.bare_library import AsyncBareChat, BareChat, bare_instrumentor
from bench.chat import Chat
from bench.instrumentations import Instrumentation
from bench.otel_spans import runtime_of
from bench.progress import Progress
from bench.report import Goal, Report, Table
from bench.timing import interleaved
from bench.turns import (
    CALL_LIMITS_US,
    CHUNK_LIMIT_US,
    FEW_CHUNKS,
    FLOOR,
    MANY_CHUNKS,
    MODES,
    WITHOUT,
    Added,
    Effort,
    Turns,
)

SUMMARY: Final = "CPU that the SDK takes by itself per call and per streamed chunk, sync and async"

_CHATS: Final[dict[str, Callable[[int], Chat]]] = {"sync": BareChat, "async": AsyncBareChat}
_FULL: Final = Effort(rounds=31, calls=40, streams=101)
_QUICK: Final = Effort(rounds=5, calls=20, streams=9)


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    effort = _QUICK if quick else _FULL
    bare = bare_instrumentor()
    ours = Instrumentation(bare.instrument, bare.uninstrument)
    tables: list[Table] = []
    goals: list[Goal] = []
    for name, make in _CHATS.items():
        calls, spans = _calls(name, make(FEW_CHUNKS), ours, effort, progress)
        chunks = _stream(name, make(MANY_CHUNKS), ours, effort, progress).of_chunks(calls)
        heading = f"{name}: CPU per call of {FEW_CHUNKS} chunks, medians"
        tables.append(calls.table(heading, "phases", spans))
        heading = f"{name}: CPU per chunk of a stream of {MANY_CHUNKS}, medians"
        tables.append(chunks.table(heading, "phases"))
        goals += [
            Goal(f"sdk_call_{mode}_{name}", calls.beyond[mode], limit, "us")
            for mode, limit in CALL_LIMITS_US.items()
        ]
        goals.append(Goal(f"sdk_chunk_{name}", chunks.beyond["attributes"], CHUNK_LIMIT_US, "us"))
    return Report("sdk", tables, goals)


def _calls(
    name: str, chat: Chat, ours: Instrumentation, effort: Effort, progress: Progress
) -> tuple[Added, dict[str, int]]:
    """Calls of hardly any stream, with metrics and OTel's own spans beside them; spans of each."""
    turns = Turns(chat)

    def work() -> None:
        chat.call(effort.calls)

    contenders = {
        WITHOUT: turns.of(None, work),
        FLOOR: turns.of(None, lambda: chat.call_and_stamp(effort.calls)),
    }
    spans: dict[str, int] = {}
    for mode, phases in MODES.items():
        plain, metered = f"only OTel's spans: {mode}", f"{mode} and metrics"
        contenders[plain], count = turns.of_plain_spans(ours, phases, effort.calls)
        contenders[mode] = turns.of(ours, work, runtime_of(phases))
        contenders[metered] = turns.of(ours, work, runtime_of(phases, metrics=True))
        spans |= dict.fromkeys((plain, mode, metered), count)
    with turns.settled():
        taken = interleaved(contenders, progress.rounds(f"sdk, {name}, calls", effort.rounds))
    return Added.of(taken, effort.calls), spans


def _stream(
    name: str, chat: Chat, ours: Instrumentation, effort: Effort, progress: Progress
) -> Added:
    """One long stream."""
    turns = Turns(chat)
    runtime = runtime_of(MODES["attributes"])
    contenders = {
        WITHOUT: turns.of(None, lambda: chat.call(1)),
        FLOOR: turns.of(None, lambda: chat.call_and_stamp(1)),
        "attributes": turns.of(ours, lambda: chat.call(1), runtime),
    }
    with turns.settled():
        taken = interleaved(contenders, progress.rounds(f"sdk, {name}, chunks", effort.streams))
    return Added.of(taken, 1)
