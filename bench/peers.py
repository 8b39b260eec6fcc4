"""Us beside the other instrumentations of openai's client, in one run.

    per call    with less without, for calls of two chunks
    per chunk   the same for one call of many chunks, less what a call costs, over the chunks
    import      in a fresh process that has openai's client and the OTel SDK already

All run in turn in one process, around openai's own client, and send their spans to the same tracer
provider: one that samples every trace (and one that samples none), a batch processor and an
exporter that drops. It is emptied between the turns, so that no export is timed as part of a call.
None of them captures content. Metrics are recorded only where that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from bench.chat import CHATS, Chat
from bench.importing import import_ms
from bench.instrumentations import OURS, PEERS, peer
from bench.otel_spans import Nowhere, runtime_of
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.timing import Contender, interleaved
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

SUMMARY: Final = "us beside other instrumentations, in openai's client: CPU per call, chunk, import"

_UNSAMPLED: Final = "unsampled"
_UNSAMPLED_LIMIT_US: Final = 30
_IMPORT_LIMIT_MS: Final = 60
_US: Final = "us"

_FULL: Final = Effort(rounds=31, calls=40, streams=61)
_QUICK: Final = Effort(rounds=5, calls=10, streams=7)
_IMPORTS: Final = {True: 3, False: 11}


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    effort = _QUICK if quick else _FULL
    tables: list[Table] = []
    goals: list[Goal] = []
    with _provider(ALWAYS_ON) as sampling, _provider(ALWAYS_OFF) as dropping:
        contest = _Contest(sampling, dropping)
        for name, make in CHATS.items():
            calls, spans = contest.calls(name, make(FEW_CHUNKS), effort, progress)
            chunks = contest.stream(name, make(MANY_CHUNKS), effort, progress).of_chunks(calls)
            tables += _tables(name, calls, chunks, spans)
            goals += _goals(name, calls, chunks)
    taken_ms = import_ms(_imports(), progress.rounds("peers, import", _IMPORTS[quick]))
    rows: list[list[Cell]] = [[name, taken] for name, taken in taken_ms.items()]
    tables.append(Table("import: CPU on top of openai's client and the OTel SDK", ["", "ms"], rows))
    goals.append(Goal("peers_import", taken_ms[_US], _IMPORT_LIMIT_MS, "ms"))
    return Report("peers", tables, goals)


@contextmanager
def _provider(sampler: Sampler) -> Iterator[TracerProvider]:
    provider = TracerProvider(sampler, Resource({}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    try:
        yield provider
    finally:
        provider.shutdown()


class _Contest:
    """Those that are compared, and where their spans go.

    Args:
        sampling: samples every trace.
        dropping: samples none.
    """

    def __init__(self, sampling: TracerProvider, dropping: TracerProvider) -> None:
        self._sampling = sampling
        self._ours = {
            mode: runtime_of(phases, provider=sampling) for mode, phases in MODES.items()
        } | {_UNSAMPLED: runtime_of(MODES["spans"], provider=dropping)}
        self._ours_metered = {
            mode: runtime_of(phases, provider=sampling, metrics=True)
            for mode, phases in MODES.items()
        }
        self._peers = {name: peer(name, sampling) for name in PEERS}
        meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
        self._peers_metered = {
            name: peer(name, sampling, meters) for name, each in PEERS.items() if each.has_metrics
        }

    def calls(
        self, name: str, chat: Chat, effort: Effort, progress: Progress
    ) -> tuple[Added, dict[str, int]]:
        """Calls of hardly any stream; and how many spans each makes."""
        turns, count = Turns(chat), effort.calls

        def work() -> None:
            chat.call(count)

        contenders = {
            WITHOUT: turns.of(None, work),
            FLOOR: turns.of(None, lambda: chat.call_and_stamp(count)),
        }
        spans = dict.fromkeys(PEERS, 1)
        for mode, phases in MODES.items():
            plain = f"only OTel's spans: {mode}"
            contenders[plain], spans[plain] = turns.of_plain_spans(OURS, phases, count)
            spans |= dict.fromkeys((_us(mode), _metered(_us(mode))), spans[plain])
        contenders |= self._everybody(turns, work)
        for mode, runtime in self._ours_metered.items():
            contenders[_metered(_us(mode))] = turns.of(OURS, work, runtime)
        for peer_name, instrumentation in self._peers_metered.items():
            contenders[_metered(peer_name)] = turns.of(instrumentation, work)
            spans[_metered(peer_name)] = 1
        label = f"peers, {name}, calls"
        return self._taken(turns, contenders, progress.rounds(label, effort.rounds), count), spans

    def stream(self, name: str, chat: Chat, effort: Effort, progress: Progress) -> Added:
        """One long stream."""
        turns = Turns(chat)
        contenders = {
            WITHOUT: turns.of(None, lambda: chat.call(1)),
            FLOOR: turns.of(None, lambda: chat.call_and_stamp(1)),
            **self._everybody(turns, lambda: chat.call(1)),
        }
        label = f"peers, {name}, chunks"
        return self._taken(turns, contenders, progress.rounds(label, effort.streams), 1)

    def _everybody(self, turns: Turns, work: Callable[[], None]) -> dict[str, Contender]:
        """Us in each of our ways, and the others."""
        ours = {_us(mode): turns.of(OURS, work, each) for mode, each in self._ours.items()}
        return ours | {name: turns.of(each, work) for name, each in self._peers.items()}

    def _taken(
        self, turns: Turns, contenders: dict[str, Contender], rounds: Iterator[int], count: int
    ) -> Added:
        emptied = {name: self._emptied(each) for name, each in contenders.items()}
        with turns.settled():
            return Added.of(interleaved(emptied, rounds), count)

    def _emptied(self, contender: Contender) -> Contender:
        """The same, with no spans of others in the queue, where a full one would be exported."""

        def prepare() -> None:
            contender.prepare()
            self._sampling.force_flush()

        return Contender(contender.work, prepare)


def _us(mode: str) -> str:
    return f"us: {mode}"


def _metered(name: str) -> str:
    return f"{name}, metrics too"


def _tables(name: str, calls: Added, chunks: Added, spans: dict[str, int]) -> list[Table]:
    of_call = f"{name} openai: CPU per call of {FEW_CHUNKS} chunks, medians"
    of_chunk = f"{name} openai: CPU per chunk of a stream of {MANY_CHUNKS}, medians"
    return [calls.table(of_call, "", spans), chunks.table(of_chunk, "")]


def _goals(name: str, calls: Added, chunks: Added) -> list[Goal]:
    chunk_us = chunks.beyond[_us("attributes")]
    least_us = round(min(chunks.beyond[each] for each in PEERS), 1)
    return [
        *(
            Goal(f"peers_call_{mode}_{name}", calls.beyond[_us(mode)], limit, "us")
            for mode, limit in CALL_LIMITS_US.items()
        ),
        Goal(f"peers_unsampled_{name}", calls.beyond[_us(_UNSAMPLED)], _UNSAMPLED_LIMIT_US, "us"),
        Goal(f"peers_chunk_{name}", chunk_us, CHUNK_LIMIT_US, "us"),
        Goal(f"peers_chunk_below_every_peer_{name}", chunk_us, least_us, "us"),
    ]


def _imports() -> dict[str, str]:
    return {_US: "import llmlat_otel.auto", **{name: each.lines for name, each in PEERS.items()}}
