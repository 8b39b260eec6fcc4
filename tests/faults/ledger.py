"""What has come to a destination, against what was sent: span by span, lane by lane."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv.spans import lane_span_name
from tests.faults.load import SpanId
from tests.llmlat_processor.sink import Arrivals

LANE = lane_span_name()


def arrived(destinations: Iterable[Arrivals]) -> Counter[SpanId]:
    """How often each span has come that was not made by the processor."""
    return Counter(
        (span.trace_id, span.span_id)
        for destination in destinations
        for _, scope, span in destination.spans
        if scope.scope.name != OWN_SCOPE
    )


def repeats(spans: Counter[SpanId]) -> int:
    """How many came more than they should have."""
    return spans.total() - len(spans)


def lanes(destinations: Iterable[Arrivals]) -> Mapping[bytes, Counter[bytes]]:
    """By trace, how often each lane has come: by the id of its first span."""
    found: dict[bytes, Counter[bytes]] = defaultdict(Counter)
    for destination in destinations:
        for _, scope, span in destination.spans:
            if scope.scope.name == OWN_SCOPE and span.name == LANE:
                found[span.trace_id][span.span_id] += 1
    return found


def check_all_came(sent: Iterable[SpanId], *destinations: Arrivals) -> Counter[SpanId]:
    """None is missing, and none is there that nobody has sent."""
    spans, wanted = arrived(destinations), set(sent)
    missing = wanted - spans.keys()
    assert not missing, f"{len(missing)} of {len(wanted)} spans are missing"
    assert not spans.keys() - wanted, "spans that nobody has sent"
    return spans


def check_each_came_once(sent: Iterable[SpanId], *destinations: Arrivals) -> None:
    """The same, and none came twice."""
    spans = check_all_came(sent, *destinations)
    assert not repeats(spans), f"{repeats(spans)} spans came again"


def check_each_has_its_lane(
    sent: Iterable[SpanId], *destinations: Arrivals, at_most: int = 1
) -> None:
    """Every trace has a lane, and no lane came more than so many times."""
    found = lanes(destinations)
    without = {trace_id for trace_id, _ in sent} - found.keys()
    assert not without, f"{len(without)} traces have no lane"
    assert max(count for lane in found.values() for count in lane.values()) <= at_most
