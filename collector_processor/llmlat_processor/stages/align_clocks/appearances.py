"""What wall stamps make look impossible although an offset explains it: said, never corrected.

    caller        ├─────────────────┤
    callee   ├─────────────┤               on raw stamps; with 5 ms between the clocks it fits

Nothing is moved (jaegertracing/jaeger#1459): the finding says which offsets would make it fit.
"""

from __future__ import annotations

from llmlat_processor.model import Finding, Interval, Trace
from llmlat_processor.stages.align_clocks.messages import Exchange
from llmlat_processor.stages.align_clocks.placement import Placement
from llmlat_semconv.values import FindingKind


def appearance(trace: Trace, placement: Placement, exchange: Exchange) -> Finding | None:
    """The finding that a callee lies outside its caller on raw stamps, but fits inside it."""
    caller, callee = exchange.caller, exchange.callee
    one, other = trace.operations[caller.position], trace.operations[callee.position]
    waited_ns = one.end_ns - one.start_ns
    epsilon_ns = exchange.request.epsilon_ns + waited_ns * trace.assumptions.drift_ppm // 1_000_000
    tolerance_ns = epsilon_ns + trace.assumptions.tail_ns
    last_output_ns = _on_the_wall(placement, trace, callee.last_by, callee.last_output_ns)
    early_ns, late_ns = one.start_ns - other.start_ns, last_output_ns - one.end_ns
    if early_ns <= epsilon_ns and late_ns <= tolerance_ns:
        return None
    last_event_ns = one.end_ns
    if caller.last_event_ns is not None:
        last_event_ns = _on_the_wall(placement, trace, caller.position, caller.last_event_ns)
    low_ns, high_ns = last_output_ns - last_event_ns, other.start_ns - one.start_ns
    if low_ns > high_ns + epsilon_ns + tolerance_ns:
        return None  # it fits nowhere: that is for durations to say
    return Finding(
        FindingKind.APPARENT_NEGATIVE_NETWORK,
        other.span_id,
        max(early_ns, late_ns),
        (other.span_id, one.span_id),
        epsilon_ns,
        interval=Interval(low_ns if caller.waited else None, high_ns),
    )


def _on_the_wall(placement: Placement, trace: Trace, position: int, at_ns: int) -> int:
    """An instant of an operation as its own wall stamps would have it."""
    return trace.operations[position].start_ns + at_ns - placement.starts_ns[position]
