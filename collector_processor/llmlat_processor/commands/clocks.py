"""`llmlat clocks`: all traces of some files in, what they prove of the clocks over time out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, TextIO

from llmlat_processor.clock_history import DEFAULTS, ClockHistory, HistorySettings
from llmlat_processor.clock_history.lasting import lasting
from llmlat_processor.clock_state import ClockState
from llmlat_processor.commands.loading import Fetch, by_trace, load_all, nowhere
from llmlat_processor.commands.output import Screen
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.streams import carries_unicode
from llmlat_processor.finding_counts import FindingCounts
from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.model.clock_history import (
    ClocksOverTime,
    KnownClock,
    PairOverTime,
    Step,
    Stretch,
    WallShift,
)
from llmlat_processor.pipeline import process
from llmlat_processor.views.clocks_document import clocks_document
from llmlat_processor.views.terminal.clock_intervals import draw_clocks_over_time
from llmlat_semconv import attributes as names

DONE: Final = 0
NOTHING_SHOWN: Final = 1
NOT_KEPT: Final = 1

SAYS: Final = "llmlat clocks"


@dataclass(frozen=True, slots=True)
class Request:
    """What `clocks` was asked for.

    Attributes:
        files: as for `show`.
        state: a file that holds what earlier runs learned, and what this one did; empty for none.
        window_ns: length of a window of time.
        as_json: one JSON document instead of a picture.
        everything: True leaves nothing out of the picture.
    """

    files: Sequence[str]
    state: str = ""
    window_ns: int = DEFAULTS.window_ns
    as_json: bool = False
    everything: bool = False


def clocks(request: Request, out: TextIO, progress: Progress, fetch: Fetch = nowhere) -> int:
    """Tell of every pair of clocks; exit code 1 where there is none, or the state is not kept."""
    state = None
    if request.state:
        state = ClockState(request.state, lambda words: progress.tell(f"{SAYS}: {words}"))
    with nullcontext() if state is None else state.alone():  # no longer: a pager may hold it up
        reader, is_kept = _read(request, state, progress, fetch)
    told = reader.told()
    reason = "" if told.pairs else reader.why_nothing()
    if reason:
        progress.tell(f"{SAYS}: {reason}")
    if request.as_json:
        json.dump({**clocks_document(told), "reason": reason or None}, out)
        out.write("\n")
    elif not reason:
        _draw(told, out, everything=request.everything)
    if reason:
        return NOTHING_SHOWN
    return DONE if is_kept else NOT_KEPT


def _read(
    request: Request, state: ClockState | None, progress: Progress, fetch: Fetch
) -> tuple[_Reader, bool]:
    """All that the files and earlier runs tell, and whether that is kept where it shall be."""
    settings = HistorySettings(window_ns=request.window_ns)
    known = ClockHistory(settings) if state is None else state.read(settings)
    reader = _Reader(ClockHistory(settings) if known is None else known)
    spans = load_all(SAYS, request.files, progress, fetch)
    for number, members in enumerate(_in_order(by_trace(spans).values()), start=1):
        progress.at(f"explaining trace {number:,}")
        reader.read(members)
    progress.clear()
    if state is None or not reader.history.known:
        return reader, True
    return reader, known is not None and state.write(known)


def _draw(told: ClocksOverTime, out: TextIO, *, everything: bool) -> None:
    screen = Screen(out)
    unicode = carries_unicode(screen.file)
    screen.print(draw_clocks_over_time(told, screen.width, unicode=unicode, everything=everything))


class _Reader:
    """Reads trace after trace into a history, and remembers what people call the clocks."""

    def __init__(self, history: ClockHistory) -> None:
        self.history = history
        history.on_gone = self._keep
        self.findings = FindingCounts()
        self.traces = 0
        self.left_out = 0
        self.passing = 0
        self._gone: list[Stretch] = []
        self._clocks: dict[str, KnownClock] = {}
        self._shifts: dict[tuple[str, str, int], WallShift] = {}

    def read(self, spans: Sequence[Span]) -> None:
        """Explain a trace, and learn of the clocks in it."""
        explained = process(spans)
        aligned = explained.aligned
        self.traces += 1
        self.left_out += aligned.clocks.left_out
        self.findings.observe(explained)
        walls_ns = self._meet(aligned)
        messages = lasting(aligned)
        self.passing += len(aligned.clocks.messages) - len(messages)
        for message in messages:
            first, second = sorted((message.sender, message.receiver))
            at_ns = message.left_ns if message.sender == first else message.arrived_ns
            shift = WallShift(walls_ns.get(first, 0), walls_ns.get(second, 0))
            self._shifts[first, second, at_ns // self.history.settings.window_ns] = shift
        services = {domain: clock.services for domain, clock in self._clocks.items()}
        self.history.learn(aligned.trace.trace_id, messages, services)

    def told(self) -> ClocksOverTime:
        """All that is known by now."""
        stretches: dict[tuple[str, str], list[Stretch]] = {}
        for one in [*self._gone, *self.history.stretches()]:
            stretches.setdefault((one.first, one.second), []).append(one)
        steps: dict[tuple[str, str], list[Step]] = {}
        for step in self.history.steps:
            steps.setdefault((step.first, step.second), []).append(step)
        pairs = [self._pair(key, stretches[key], steps.get(key, ())) for key in stretches]
        return ClocksOverTime(
            self.history.settings.window_ns,
            self.history.settings.drift_ppm,
            self.traces,
            sorted(pairs, key=lambda pair: (pair.first.domain, pair.second.domain)),
            self.findings.rows(),
            self._became(),
            self.left_out,
        )

    def why_nothing(self) -> str:
        """Why there is no pair of clocks to tell of."""
        if not self.traces:
            return "no span could be read"
        if len(self._clocks) == 1:
            (clock,) = self._clocks
            return (
                f"one clock stamped all that was read ({clock!r}): there is nothing to compare. "
                f"Two machines are told apart by {names.LLMLAT_CLOCK_DOMAIN_ID} or "
                f"{names.HOST_ID} of their resources"
            )
        if self.passing:
            return (
                "nothing says which calls met the same clock: services tell theirs by "
                f"{names.LLMLAT_CLOCK_DOMAIN_ID} or {names.HOST_ID} of their resources"
            )
        return (
            f"{len(self._clocks)} clocks, but no call between two of them: the spans of both the "
            "caller and the callee have to be in the files, in one trace"
        )

    def _became(self) -> dict[str, int]:
        became = {kind.value: count for kind, count in self.history.became.items()}
        return became | ({"of_clocks_of_one_call": self.passing} if self.passing else {})

    def _keep(self, stretch: Stretch) -> None:
        self._gone.append(stretch)

    def _pair(
        self, key: tuple[str, str], stretches: Sequence[Stretch], steps: Sequence[Step]
    ) -> PairOverTime:
        ordered = sorted(stretches, key=lambda one: (one.epoch, one.start_ns))
        length_ns = self.history.settings.window_ns
        first, second = (
            self._clocks.get(domain) or KnownClock(domain, services, "", None)
            for domain, services in zip(key, self.history.services(*key), strict=True)
        )
        shifts = [self._shifts.get((*key, one.start_ns // length_ns)) for one in ordered]
        return PairOverTime(first, second, ordered, shifts, steps)

    def _meet(self, aligned: AlignedTrace) -> dict[str, int]:
        """Learn who reads which clock; what their wall clocks are ahead of them, by domain."""
        walls_ns: dict[str, int] = {}
        rows = zip(aligned.trace.operations, aligned.domains, aligned.starts_ns, strict=True)
        for span, domain, start_ns in rows:
            wall_ns = walls_ns.setdefault(domain, span.start_ns - start_ns)
            met = self._clocks.get(domain)
            service = span.resource.service
            if met is None or service not in met.services or (wall_ns and not met.is_monotonic):
                services = {service, *(() if met is None else met.services)}
                is_monotonic = wall_ns != 0 or (met is not None and met.is_monotonic is True)
                host = _host(span) if met is None else met.host
                self._clocks[domain] = KnownClock(
                    domain, tuple(sorted(services)), host, is_monotonic
                )
        return walls_ns


def _host(span: Span) -> str:
    said = (span.resource.attributes.get(key) for key in (names.HOST_NAME, names.HOST_ID))
    return next((host for host in said if isinstance(host, str) and host), "")


def _in_order(traces: Iterable[list[Span]]) -> list[list[Span]]:
    """Traces as they happened: by the start of the first root, else of any span."""
    return sorted(traces, key=_start_ns)


def _start_ns(spans: Sequence[Span]) -> int:
    roots = [span.start_ns for span in spans if not span.parent_id]
    return min(roots or [span.start_ns for span in spans])
