"""Each way to stand behind a collector, up to a real Jaeger: all spans, and a lane where it is due.

Every trace is sent in parts, a request for each service, those of callees first: whoever puts it
together has it from several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from backends import Addresses, jaeger
from bench.traces import plain_trace, request_of
from children import Children
from llmlat_processor.wire.sharding import shard_of
from tests.integration.collector.arrivals import distinct, lanes, until
from tests.integration.collector.cells import CELLS, Cell, running, without_a_tap
from tests.integration.collector.passage import Passage, passage, spans_as_bytes
from tests.integration.jaeger.lanes import (
    SCOPE,
    check_lane,
    check_only_appended_to,
    is_ours,
    originals,
)
from tests.integration.jaeger.sending import sent_as
from tests.integration.jaeger.storage import Jaeger, Stored, unpack
from tests.llmlat_processor.sink import sink

pytestmark = pytest.mark.peers

CASES = ("call_worked_adviser", "call_parallel_tools_explicit", "call_client_gateway_engine")
OF_EACH = 5
PLAIN = 10

Known = dict[bytes, Stored]


@dataclass(frozen=True)
class Load:
    """What is sent, and what must be found; both by trace id.

    Attributes:
        requests: as an app sends them.
        explained: spans of each trace that speaks of GenAI or phases, by their ids.
        plain: the same of all others.
    """

    requests: Sequence[bytes]
    explained: dict[bytes, Known]
    plain: dict[bytes, Known]

    @property
    def traces(self) -> dict[bytes, Known]:
        """All of them."""
        return {**self.explained, **self.plain}

    @property
    def spans(self) -> int:
        """How many there are."""
        return sum(map(len, self.traces.values()))


def load_of(cell: Cell) -> Load:
    """Traces with every field of OTLP, and between them web requests."""
    random = Random(str(cell))
    explained = [sent_as(name).request for name in CASES for _ in range(OF_EACH)]
    plain = [request_of([plain_trace(random)]) for _ in range(PLAIN)]
    for each in (span for request in plain for span in unpack(request)):
        each.span.status.SetInParent()  # a Collector writes an empty one where there is none
    services = zip_longest(*(reversed(each.resource_spans) for each in [*plain, *explained]))
    parts = [
        ExportTraceServiceRequest(resource_spans=[part]).SerializeToString()
        for of_one_turn in services
        for part in of_one_turn
        if part is not None
    ]
    return Load(parts, _by_trace(explained), _by_trace(plain))


def _by_trace(requests: Sequence[ExportTraceServiceRequest]) -> dict[bytes, Known]:
    found: dict[bytes, Known] = {}
    for each in (span for request in requests for span in unpack(request)):
        found.setdefault(each.span.trace_id, {})[each.span.span_id] = each
    return found


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """One Jaeger for all: each trace that is sent has ids of its own."""
    addresses = Addresses.free()
    backend = jaeger(addresses)
    with Children(tmp_path_factory.mktemp("jaeger")) as children:
        last = children.start("jaeger", backend.command, **backend.environment)
        last.healthy(backend.ready)
        yield addresses


def all_have_come(end: Passage, load: Load) -> bool:
    """Every span that was sent, and a lane of each trace that has one."""
    come = [Stored(span, of_scope.scope, place.resource) for place, of_scope, span in end.spans]
    drawn = {each.span.trace_id for each in come if is_ours(each)}
    theirs = {(each.span.trace_id, each.span.span_id) for each in originals(come)}
    return len(theirs) == load.spans and drawn >= load.explained.keys()


def through(cell: Cell, load: Load, storage: Addresses, folder: Path) -> Passage:
    """What has gone into Jaeger when nothing is on its way any more."""
    with passage(storage.jaeger_otlp) as end, running(cell, end.address, folder) as line:
        line.send(load.requests)
        until(lambda: all_have_come(end, load), lambda: distinct(end))
        line.drain()
    return end


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_everything_is_in_jaeger_with_a_lane_where_one_is_due(
    cell: Cell, storage: Addresses, tmp_path: Path
) -> None:
    load = load_of(cell)
    end = through(cell, load, storage, tmp_path)
    store = Jaeger(storage.jaeger_http, storage.jaeger_grpc)
    stored = {trace_id: store.stored(trace_id) for trace_id in load.traces}
    for trace_id, known in load.traces.items():
        check_complete(stored[trace_id], known)
    for trace_id in load.explained:
        assert list(lanes(stored[trace_id]).values()) == [1]
        check_lane(stored[trace_id])
    for trace_id, known in load.plain.items():
        check_as_sent(stored[trace_id], known)
    if cell.mode == "tap":
        for trace_id, known in load.explained.items():
            check_as_sent(originals(stored[trace_id]), known)
        check_own_way(cell, load, end, tmp_path)
    if cell.workers > 1:
        assert {shard_of(trace_id, cell.workers) for trace_id in load.traces} == {0, 1}


def check_complete(spans: Sequence[Stored], known: Known) -> None:
    """Every span once, with all that was sent of it; something may stand behind it."""
    theirs = originals(spans)
    assert sorted(each.span.span_id for each in theirs) == sorted(known)
    for each in theirs:
        check_only_appended_to(each, known[each.span.span_id])


def check_as_sent(spans: Sequence[Stored], known: Known) -> None:
    """Nothing beside these spans, and nothing in them."""
    assert len(spans) == len(known)
    assert all(each.span == known[each.span.span_id].span for each in spans)


def check_own_way(cell: Cell, load: Load, end: Passage, folder: Path) -> None:
    """Beside a tap, spans are the same bytes on the wire as without one; only lanes are more.

    Not always those that were sent: the Collector writes the fields of a message from the last to
    the first. Rotel writes them as they were.
    """
    with sink() as reference, without_a_tap(cell, reference.address, folder) as line:
        line.send(load.requests)
        until(lambda: distinct(reference) == load.spans, lambda: distinct(reference))
        line.drain()
    expected, come = spans_as_bytes(reference.requests), spans_as_bytes(end.requests)
    assert expected.total() == load.spans
    assert expected <= come
    drawn = [span for _, of_scope, span in end.spans if of_scope.scope.name == SCOPE]
    assert (come - expected).total() == len(drawn) > 0
    if cell.collector == "rotel":
        assert expected == spans_as_bytes(load.requests)
