"""The stage: operations placed on their clocks, offsets bounded, contradictions told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from llmlat_processor.facts import Facts
from llmlat_processor.model import (
    UNKNOWN,
    AlignedTrace,
    Clocks,
    Finding,
    Interval,
    Message,
    Offset,
    Trace,
)
from llmlat_processor.offsets import Pair, intervals_from, shifted, solve, widened
from llmlat_processor.stages.align_clocks.appearances import appearance
from llmlat_processor.stages.align_clocks.contradictions import (
    found,
    of_one_exchange,
    of_two_domains,
)
from llmlat_processor.stages.align_clocks.messages import Messages
from llmlat_processor.stages.align_clocks.placement import Placement
from llmlat_processor.stages.align_clocks.steps import wall_steps
from llmlat_semconv.values import FindingKind

MOST_DOMAINS: Final = 1_000
"""Of one trace; of more, in order of appearance, nothing is computed. Each costs two walks."""


def align_clocks(trace: Trace) -> AlignedTrace:
    """Place the operations and phases of a trace, each on its own domain's clock.

    Returns:
        The same for any order of the spans. What a trace's stamps contradict is a finding with the
        messages that prove it, and bounds nothing.
    """
    placement = Placement(trace)
    alignment = _Alignment(trace, placement)
    return AlignedTrace(
        trace=trace,
        starts_ns=placement.starts_ns,
        phase_starts_ns=placement.phase_starts_ns,
        domains=placement.domains,
        resolutions_ns=placement.resolutions_ns,
        clocks=alignment.clocks(),
        findings=tuple(alignment.findings),
        facts=alignment.facts,
    )


class _Alignment:
    """What is found out about the clocks of one trace."""

    def __init__(self, trace: Trace, placement: Placement) -> None:
        self._trace = trace
        self._placement = placement
        self.facts: dict[int, Facts | None] = {}
        self.findings: list[Finding] = list(wall_steps(placement.anchors.read))

    def clocks(self) -> Clocks:
        """The offsets of all domains from the first root's; `findings` are complete after it."""
        order = list(dict.fromkeys(self._placement.domains))
        if not self._trace.roots:
            return Clocks()
        reference = self._placement.domains[self._trace.roots[0]]
        if len(order) == 1:
            return Clocks(reference, {reference: self._offset(reference, reference, {}, 0)})
        order.remove(reference)
        known = {reference, *order[: MOST_DOMAINS - 1]}
        left_out = len(order) + 1 - len(known)
        messages = self._messages()
        if left_out:
            messages = [m for m in messages if m.sender in known and m.receiver in known]
        solution = solve(self._possible(messages))
        for proof in solution.contradictions:
            self.findings.append(found(FindingKind.OFFSET_CYCLE, proof))
        if left_out:
            note = f"{left_out} clock domains beyond {MOST_DOMAINS} are left out"
            self._tell_what_is_left_out(note)
        if not solution.is_whole:
            self._tell_what_is_left_out("its clocks contradict each other too often to be bounded")
        intervals = intervals_from(solution, reference)
        counts = _counts(messages)
        offsets = {
            domain: self._offset(domain, reference, intervals, counts.get(domain, 0))
            for domain in (reference, *order)
            if domain in known
        }
        return Clocks(
            reference,
            offsets,
            tuple(messages),
            solution.limits_ns,
            solution.potentials_ns,
            left_out,
        )

    def _messages(self) -> Sequence[Message]:
        """All messages but those of exchanges that are impossible by themselves."""
        trace, placement = self._trace, self._placement
        read = Messages(trace, placement)
        self.facts = read.facts
        messages: list[Message] = []
        for exchange in read.exchanges():
            contradiction = of_one_exchange(exchange, trace.assumptions.drift_ppm)
            if contradiction is not None:
                self.findings.append(contradiction)
                continue
            messages.append(exchange.request)
            messages.extend(exchange.answers)
            seeming = None if exchange.one_way else appearance(trace, placement, exchange)
            if seeming is not None:
                self.findings.append(seeming)
        messages.extend(read.declared())
        return messages

    def _possible(self, messages: Iterable[Message]) -> Sequence[Message]:
        """Of each two domains what they agree on."""
        by_pair: dict[Pair, list[Message]] = {}
        for message in messages:
            one, other = message.sender, message.receiver
            pair = (one, other) if one < other else (other, one)
            by_pair.setdefault(pair, []).append(message)
        possible: list[Message] = []
        for pair in sorted(by_pair):
            settled = of_two_domains(by_pair[pair], self._placement.anchors.by_domain)
            possible.extend(settled.messages)
            if settled.finding is not None:
                self.findings.append(settled.finding)
        return possible

    def _offset(
        self, domain: str, reference: str, intervals: Mapping[str, Interval], messages: int
    ) -> Offset:
        if domain == reference:
            return Offset(domain, Interval(0, 0), Interval(0, 0), messages)
        interval = intervals.get(domain, UNKNOWN)
        wall_ns, blur_ns = self._placement.wall(domain)
        own_wall_ns, own_blur_ns = self._placement.wall(reference)
        wall = widened(shifted(interval, wall_ns - own_wall_ns), blur_ns + own_blur_ns)
        return Offset(domain, interval, wall, messages)

    def _tell_what_is_left_out(self, note: str) -> None:
        root = self._trace.operations[self._trace.roots[0]]
        ids = (root.span_id,)
        self.findings.append(
            Finding(FindingKind.TRUNCATED_TRACE, root.span_id, None, ids, None, note)
        )


def _counts(messages: Iterable[Message]) -> Mapping[str, int]:
    """How many messages each domain sent or received."""
    counts: dict[str, int] = {}
    for message in messages:
        for domain in message[:2]:
            counts[domain] = counts.get(domain, 0) + 1
    return counts
