"""How many spans the processor takes per second of CPU, and what each step of it costs.

request ── decode ── window ──┬── assemble, align, paths, annotate, lane ── encode ── requests
                              └── nothing of GenAI in it: as it came ────── encode
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import process_time_ns
from typing import Final

from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.timing import Contender, collecting_as_the_command_does, interleaved
from bench.traces import Batch, MakeTrace, batches, llm_trace, plain_trace
from llmlat_processor.model import Assumptions, Span
from llmlat_processor.pipeline import process_all
from llmlat_processor.service.outgoing import Preparation
from llmlat_processor.service.releasing import why_not
from llmlat_processor.settings import Deployment, Destination, Explained
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.annotate import annotate
from llmlat_processor.stages.assemble import assemble
from llmlat_processor.stages.critical_path import critical_paths
from llmlat_processor.views.lane import lane
from llmlat_processor.window import Released, Window
from llmlat_processor.wire import Request, as_sent, decode, encode_within

SUMMARY: Final = "spans per CPU second from a request to requests, and what each step takes"

STEPS: Final = (
    "decode",
    "window",
    "assemble",
    "align",
    "paths",
    "annotate",
    "lane",
    "encode",
)

_KINDS: Final[dict[str, MakeTrace]] = {"llm": llm_trace, "plain": plain_trace}
_LIMITS: Final = {"llm": 80_000, "plain": 120_000}
_ASSUMED: Final = Assumptions()
_DEPLOYMENT: Final = Deployment(spans=Destination("127.0.0.1:4317"))
_REQUEST_BYTES: Final = Destination("127.0.0.1:4317").delivery.request_bytes


def explain(batch: Batch) -> list[Request]:
    """What the processor does with a request, but for network and disk."""
    window, preparation = Window(), Preparation(_DEPLOYMENT)
    window.feed_all(decode(batch.request).spans, 0)
    meant: list[Sequence[Span]] = []
    sent: list[Request] = []
    for released in window.flush(0):
        if why_not(released, Explained.GENAI):
            sent += preparation.as_they_came(released.spans).requests
        else:
            meant.append(released.spans)
    for spans, explained in zip(meant, process_all(meant), strict=True):
        sent += preparation.explained(spans, explained).requests
    return sent


def explain_in_steps(batch: Batch, taken_ns: dict[str, int]) -> None:
    """The same, each step for all traces of the request before the next one, and timed."""
    window, preparation = Window(), Preparation(_DEPLOYMENT)
    lap = _Laps(taken_ns)
    received = decode(batch.request).spans
    lap("decode")
    window.feed_all(received, 0)
    released = window.flush(0)
    meant = [each for each in released if not why_not(each, Explained.GENAI)]
    lap("window")
    if meant:
        _explain_in_steps(meant, lap)
    for each in released if not meant else ():
        preparation.as_they_came(each.spans)
    lap("encode")


def _explain_in_steps(released: Sequence[Released], lap: _Laps) -> None:
    assembled = [assemble(each.spans, _ASSUMED) for each in released]
    lap("assemble")
    aligned = [align_clocks(trace) for trace in assembled]
    lap("align")
    paths = [critical_paths(trace) for trace in aligned]
    lap("paths")
    explained = [annotate(trace, found) for trace, found in zip(aligned, paths, strict=True)]
    lap("annotate")
    lanes = [[as_sent(span) for span in lane(each)] for each in explained]
    lap("lane")
    for each, made in zip(explained, lanes, strict=True):
        list(encode_within(_REQUEST_BYTES, [*each.trace.spans, *made], each.annotations))


class _Laps:
    """Adds the CPU time since the last call to the step that it is called with."""

    def __init__(self, taken_ns: dict[str, int]) -> None:
        self._taken_ns = taken_ns
        self._last_ns = process_time_ns()

    def __call__(self, step: str) -> None:
        now_ns = process_time_ns()
        self._taken_ns[step] = self._taken_ns.get(step, 0) + now_ns - self._last_ns
        self._last_ns = now_ns


@dataclass(slots=True)
class _Load:
    """Batches of one kind, fresh ones for each run, so that no cache of the processor knows them.

    Attributes:
        make_trace: what they are of.
        count: batches per run.
        seed: of the next run's batches.
        batches: of this run.
        spans: how many spans, per run.
        step_ns: CPU time by step, per run in steps.
    """

    make_trace: MakeTrace
    count: int
    seed: int
    batches: list[Batch] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    step_ns: list[dict[str, int]] = field(default_factory=list)

    def renew(self) -> None:
        """Make the batches of the next run."""
        self.seed += 1
        self.batches = batches(self.make_trace, self.count, self.seed)
        self.spans.append(sum(batch.spans for batch in self.batches))

    def explain(self) -> None:
        """Have all of them explained."""
        for batch in self.batches:
            explain(batch)

    def explain_in_steps(self) -> None:
        """The same, and note what each step took."""
        self.step_ns.append({})
        for batch in self.batches:
            explain_in_steps(batch, self.step_ns[-1])

    def us_per_span(self, taken_ns: Iterable[int]) -> float:
        """Median over the runs."""
        return median(ns / 1e3 / spans for ns, spans in zip(taken_ns, self.spans, strict=True))


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told the rounds.
        quick: whether a rough answer will do.
    """
    count = 4 if quick else 20
    whole = {kind: _Load(make, count, seed=0) for kind, make in _KINDS.items()}
    steps = {kind: _Load(make, count, seed=1_000) for kind, make in _KINDS.items()}
    contenders = {kind: Contender(load.explain, load.renew) for kind, load in whole.items()}
    for kind, load in steps.items():
        contenders[f"{kind} in steps"] = Contender(load.explain_in_steps, load.renew)
    with collecting_as_the_command_does():
        taken = interleaved(contenders, progress.rounds("pipeline", 3 if quick else 15))
    us = {kind: load.us_per_span(taken[kind]) for kind, load in whole.items()}
    rows = [
        [kind, *_size(whole[kind]), *_of_steps(steps[kind]), us[kind], round(1e6 / us[kind])]
        for kind in _KINDS
    ]
    columns = ["traces", "spans/batch", "spans/trace", "KB/batch", *STEPS, "whole", "spans/s"]
    goals = [
        Goal(f"pipeline_{kind}", 1e6 / us[kind], limit, "/s", at_least=True)
        for kind, limit in _LIMITS.items()
    ]
    return Report("pipeline", [Table("CPU µs per span, medians", columns, rows)], goals)


def _size(load: _Load) -> Sequence[Cell]:
    spans = sum(batch.spans for batch in load.batches)
    traces = sum(batch.traces for batch in load.batches)
    bytes_ = sum(len(batch.request) for batch in load.batches)
    return spans // load.count, round(spans / traces), round(bytes_ / 1e3 / load.count)


def _of_steps(load: _Load) -> Sequence[Cell]:
    return [
        load.us_per_span([taken[step] for taken in load.step_ns]) if step in load.step_ns[0] else ""
        for step in STEPS
    ]
