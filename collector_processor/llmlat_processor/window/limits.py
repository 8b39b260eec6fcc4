"""How long a trace is held, and how much is held and remembered at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECOND_NS: Final = 1_000_000_000
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """When a trace is let go, and how much is held at most.

    Attributes:
        idle_ns: a complete trace is released when nothing came for so long.
        grace_ns: the same while a call misses its callee, whose exporter flushes by itself.
        hold_max_ns: longest that any span is held, from the first one of its trace that is held.
        skeleton_ns: how long what was let go of a trace without its root is kept, so that it can
            be explained when that comes; it starts afresh whenever more is let go.
        tombstone_ns: how long a released trace is remembered, so that late spans are told.
        trace_spans: most spans of one trace; above it fan-outs of equal leaves collapse.
        trace_bytes: most bytes held of one trace, so that it leaves room for others.
        held_bytes: most bytes held; above it the oldest traces are released early.
        traces: most traces held; above it the same.
        revision_bytes: most bytes of skeletons, of traces without their root and of released ones
            that late spans may still change; above it the oldest are forgotten.
        tombstones: most released traces that are remembered with their spans.
        tombstone_spans: most spans of them, so that repeats are told from late ones.
        remembered_traces: about how many traces are remembered beyond that by their ids alone.
        hopeless_calls: calls without a callee after which a target is no longer waited for.
        targets: most targets that are remembered.
    """

    idle_ns: int = 2 * SECOND_NS
    grace_ns: int = 6 * SECOND_NS
    hold_max_ns: int = 60 * SECOND_NS
    skeleton_ns: int = 6 * 3_600 * SECOND_NS
    tombstone_ns: int = 600 * SECOND_NS
    trace_spans: int = 50_000
    trace_bytes: int = 64 * MIB
    held_bytes: int = 256 * MIB
    traces: int = 200_000
    revision_bytes: int = 64 * MIB
    tombstones: int = 100_000
    tombstone_spans: int = 2_000_000
    remembered_traces: int = 1_000_000
    hopeless_calls: int = 100
    targets: int = 1_000
