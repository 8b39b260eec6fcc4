"""How long after the start of the trace an operation can have begun at most, by no clock but time.

Two clocks part by so much in that time that an offset at one end of a long trace is not the offset
at the other. Time passes alike for all of them, so that durations tell it:

    root      ├────────── caller ├─────────────┤          the callee began before its caller ended
    elsewhere                        ├ callee ────●       so this is at most that much later
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llmlat_processor.model import CLIENT, CONSUMER, PRODUCER, SERVER, Trace
from llmlat_processor.stages.align_clocks.placement import Placement

MILLION: Final = 1_000_000
LEAST_NS: Final = 1_000_000
"""A clock that shows milliseconds may show none of them."""


class Elapsed:
    """Upper bounds of the time from the start of the first root to any operation of its trace."""

    def __init__(self, trace: Trace, placement: Placement, parents_first: Sequence[int]) -> None:
        self._ppm = trace.assumptions.drift_ppm
        self._starts_ns = starts = placement.starts_ns
        self._since_ns = since = [0] * len(starts)
        if not self._ppm:
            return
        parents, domains = trace.parents, placement.domains
        for position in parents_first:
            above = parents[position]
            if above >= 0 and domains[above] == domains[position]:
                since[position] = since[above] + max(0, starts[position] - starts[above])
            else:
                since[position] = self._begun_ns(trace, position)

    def drift_ns(self, sender: int, left_ns: int, receiver: int, arrived_ns: int) -> int:
        """By how much an offset may have changed since the trace's start, until a message.

        It counts up to its sooner end: the bound holds all the time in between. What passed by a
        clock may itself be wrong by that clock's drift.

        Args:
            sender: index of the operation that it left.
            left_ns: when, on its clock.
            receiver: index of the operation in which it arrived.
            arrived_ns: when, on its clock.
        """
        if not self._ppm:
            return 0
        since, starts = self._since_ns, self._starts_ns
        passed_ns = since[sender] + left_ns - starts[sender]
        passed_ns = max(0, min(passed_ns, since[receiver] + arrived_ns - starts[receiver]))
        return (passed_ns + passed_ns // 1_000 + LEAST_NS) * self._ppm // MILLION

    def _begun_ns(self, trace: Trace, position: int) -> int:
        """Of what nobody is known to have called, its wall clock has to be believed as well."""
        operations, above = trace.operations, trace.parents[position]
        span = operations[position]
        by_wall_ns = abs(span.start_ns - operations[trace.roots[0]].start_ns)
        if above < 0 or above in trace.stand_ins:
            return by_wall_ns
        kind = operations[above].kind
        ended_ns = self._since_ns[above] + operations[above].duration_ns
        was_called = (span.kind == SERVER or kind == CLIENT) and (
            span.kind != CONSUMER and kind != PRODUCER
        )
        return ended_ns if was_called else max(by_wall_ns, ended_ns)
