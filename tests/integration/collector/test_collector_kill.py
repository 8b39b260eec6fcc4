"""Killed under load, and nothing is lost of what any sender was told is safe.

    5,000 spans/s ─> collector, queue ─> processor, journal ─> passage ─> collector ─> Jaeger
                                         kill -9, started again

The load comes from nobody in particular: agents with calls through a gateway to an engine. What the
callees say comes a second before what their callers say, so that each kill finds traces held.

What is on its way as its sender is killed is sent again, whoever has it. Nothing is sent a third
time, where a kill waits until what the one before has made doubtful is through; on a machine under
load that takes as long as it takes, and the load goes on. A trace of which the collector sends a
part seconds later, since it has to try again, gets another lane, which is a revision of the first.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from backends import Addresses, jaeger
from bench.traces import ADVISER, batches, llm_trace
from children import Child, Children
from tests.faults.processor_run import is_alive, workers_of
from tests.integration.collector.arrivals import lanes, until
from tests.integration.collector.collectors import sender, shipped, start_collector, start_processor
from tests.integration.collector.passage import Passage, passage
from tests.integration.jaeger.lanes import SCOPE, originals
from tests.integration.jaeger.storage import Jaeger, Stored, unpack

pytestmark = pytest.mark.peers

SPANS_A_SECOND: Final = 5_000
STEP_S: Final = 0.1
BEHIND: Final = 10
"""How many steps what the callers say is behind."""

BEFORE: Final = 35
"""How many steps there are before the first kill, and at least between two."""

AFTER: Final = 15
"""How many there are after the last."""

MOST: Final = 600
"""How many there are at most: a processor that does not come up again has an end."""


@dataclass(frozen=True)
class Step:
    """A tenth of a second of load: what the callees say, and what their callers say.

    Attributes:
        callees: sent now.
        callers: sent BEHIND steps later.
        spans: ids of the spans by trace.
    """

    callees: bytes
    callers: bytes
    spans: dict[bytes, set[bytes]]


def step(number: int) -> Step:
    """The same number, the same step."""
    size = round(SPANS_A_SECOND * STEP_S)
    (whole,) = batches(llm_trace, 1, seed=number, size=size)
    callees, callers = ExportTraceServiceRequest(), ExportTraceServiceRequest()
    spans: dict[bytes, set[bytes]] = {}
    for of_resource in ExportTraceServiceRequest.FromString(whole.request).resource_spans:
        name = of_resource.resource.attributes[0].value.string_value
        side = callers if name == ADVISER else callees
        side.resource_spans.append(of_resource)
    for each in (*unpack(callees), *unpack(callers)):
        spans.setdefault(each.span.trace_id, set()).add(each.span.span_id)
    return Step(callees.SerializeToString(), callers.SerializeToString(), spans)


@dataclass
class Line:
    """Everything in its place; the processor in the middle, or a part of it, can be killed."""

    children: Children
    addresses: Addresses
    end: Passage
    folder: Path
    workers: int
    started: list[Child] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    fresh: set[bytes] = field(default_factory=set)
    looked_at: int = 0

    @property
    def processor(self) -> Child:
        """As it was started last."""
        return self.started[-1]

    def start_processor(self) -> None:
        """Start it, for the first time or again."""
        name = f"processor-{len(self.started) + 1}"
        around = replace(self.addresses, back=self.end.address)
        of = (self.children, "inline", around, self.folder, name)
        self.started.append(start_processor(*of, workers=self.workers))

    def is_through(self) -> bool:
        """Whether a lane has come of a trace that was begun well after the last kill.

        What the journal had is sent before it.
        """
        come, self.looked_at = self.end.spans[self.looked_at :], len(self.end.spans)
        drawn = {span.trace_id for _, of_scope, span in come if of_scope.scope.name == SCOPE}
        return not self.fresh.isdisjoint(drawn)

    def kill_processor(self) -> None:
        """As if its machine had killed it, with no word to it; then somebody starts it again."""
        self.processor.still_running()
        self._kill(self.processor.pid)
        self.processor.stop()
        self.start_processor()

    def kill_worker(self) -> None:
        """The same to one of its workers, each time another."""
        (pid, *_) = sorted(set(self.alive()).difference(self.killed))
        self._kill(pid)

    def alive(self) -> list[int]:
        """Its workers."""
        return [pid for pid in workers_of(self.processor.pid) if is_alive(pid)]

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.killed.append(pid)
        self.fresh.clear()


@contextmanager
def line(folder: Path, workers: int) -> Iterator[Line]:
    """The collector with the config that is shipped, in front of a real Jaeger."""
    addresses = Addresses.free()
    storage = jaeger(addresses)
    with passage(addresses.back) as end, Children(folder) as children:
        made = Line(children, addresses, end, folder, workers)
        last = children.start("jaeger", storage.command, **storage.environment)
        last.healthy(storage.ready)
        made.start_processor()
        made.processor.listening(addresses.processor)
        start_collector(children, shipped("inline").config, addresses, folder)
        yield made


def run(made: Line, kill: Callable[[], None], times: int) -> dict[bytes, set[bytes]]:
    """Send at its pace, kill in between; ids of the spans that were sent, by trace."""
    steps: list[Step] = []
    sent: dict[bytes, set[bytes]] = {}
    last_kill, is_through = 0, True  # before the first one nothing is doubtful
    with sender(made.addresses.otlp_grpc) as export:
        while len(made.killed) < times or len(steps) < last_kill + AFTER:
            assert len(steps) < MOST, "what was killed has not come back"
            began = time.monotonic()
            steps.append(step(len(steps)))
            sent |= steps[-1].spans
            export(steps[-1].callees)
            if len(steps) > BEHIND:
                export(steps[-1 - BEHIND].callers)
            if len(steps) > last_kill + BEHIND:
                made.fresh |= steps[-1].spans.keys()
            is_through = made.is_through() or is_through
            is_due = len(steps) >= last_kill + BEFORE and len(made.killed) < times
            if is_due and is_through:
                kill()
                last_kill, is_through = len(steps), False
            time.sleep(max(0.0, began + STEP_S - time.monotonic()))
        for late in steps[-BEHIND:]:
            export(late.callers)
    return sent


@dataclass
class Arrivals:
    """What has come to its end of each trace; one that is whole is not asked for again."""

    store: Jaeger
    sent: dict[bytes, set[bytes]]
    lanes: dict[bytes, Counter[bytes]]
    missing: dict[bytes, set[bytes]]

    def all_there(self) -> bool:
        """Ask for those that are not whole yet."""
        for trace_id in list(self.missing):
            spans = self.store.stored(trace_id)
            self.lanes[trace_id] = lanes(spans)
            self.missing[trace_id] = self.sent[trace_id] - {
                each.span.span_id for each in originals(spans)
            }
            if self.lanes[trace_id] and not self.missing[trace_id]:
                del self.missing[trace_id]
        return not self.missing

    def still_missing(self) -> tuple[int, int]:
        """Spans, and traces that are not whole or have no lane: neither ever grows."""
        return sum(map(len, self.missing.values())), len(self.missing)


def check_nothing_is_lost(made: Line, sent: dict[bytes, set[bytes]]) -> None:
    """No span is missing, every trace has its lane, and none was sent more than twice."""
    store = Jaeger(made.addresses.jaeger_http, made.addresses.jaeger_grpc)
    arrived = Arrivals(store, sent, {}, dict(sent))
    until(arrived.all_there, arrived.still_missing)
    spans, traces = arrived.still_missing()
    assert spans == 0, f"{spans:,} spans of {traces:,} traces are missing"
    without = [each for each in sent if not arrived.lanes[each]]
    assert without == [], f"{len(without):,} traces have no lane"
    made.processor.still_running()
    made.processor.stop()
    often = lanes(Stored(span, scope.scope, of.resource) for of, scope, span in made.end.spans)
    assert len(often) >= len(sent)
    assert max(often.values()) <= 2, f"a lane was sent {max(often.values())} times"


def test_killed_three_times_nothing_is_lost_and_every_trace_has_its_lane(tmp_path: Path) -> None:
    with line(tmp_path, workers=1) as made:
        sent = run(made, made.kill_processor, times=3)
        check_nothing_is_lost(made, sent)
    assert len(made.started) == 1 + 3


def test_workers_that_are_killed_are_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    """Each of the two once; the processor that has started them goes on all the time."""
    with line(tmp_path, workers=2) as made:
        sent = run(made, made.kill_worker, times=2)
        assert len(made.alive()) == 2
        check_nothing_is_lost(made, sent)
    assert len(made.started) == 1
