"""Who called whom across clocks, and the messages that prove something of these.

    caller   ── sent ──────────────── first content ──── last event or byte ──
                   ╲                    ╱                   ╱
    callee          start ───── first output ────── last output ──

A request always left before it arrived. An answer is a message back only where the caller is known
to have waited for it; what goes one way has none (jaegertracing/jaeger#448).
"""

from __future__ import annotations

from collections.abc import Iterator

from llmlat_processor.facts import Facts
from llmlat_processor.model import CONSUMER, PRODUCER, Message, Trace
from llmlat_processor.relations import joined_ids, relationship
from llmlat_processor.stages.align_clocks.edges import Callee, Caller, Edges
from llmlat_processor.stages.align_clocks.elapsed import Elapsed
from llmlat_processor.stages.align_clocks.placement import Placement, children_of, parents_first
from llmlat_semconv.values import LinkRelationship


class Exchange:
    """One callee of one caller, on two clocks (plain slots: hot path).

    Attributes:
        request: from the caller to the callee.
        answers: from the callee to the caller; empty where nothing is known to have come back.
        one_way: nobody waits for an answer.
    """

    __slots__ = ("answers", "callee", "caller", "one_way", "request")

    def __init__(
        self,
        caller: Caller,
        callee: Callee,
        request: Message,
        answers: tuple[Message, ...],
        one_way: bool,
    ) -> None:
        self.caller = caller
        self.callee = callee
        self.request = request
        self.answers = answers
        self.one_way = one_way


class Messages:
    """Reads the messages between the clocks of a trace off its spans.

    Attributes:
        facts: what was read of operations so far, by their index.
    """

    def __init__(self, trace: Trace, placement: Placement) -> None:
        children = children_of(trace)
        self._trace = trace
        self._parents_first = parents_first(trace, children)
        self._domains = placement.domains
        self._starts_ns = placement.starts_ns
        self._blurs_ns = placement.blurs_ns
        self._edges = Edges(trace, placement, children)
        self.facts = self._edges.read
        self._elapsed = Elapsed(trace, placement, self._parents_first)

    def exchanges(self) -> Iterator[Exchange]:
        """Every operation whose parent has another clock, with what its caller knows of it."""
        domains, parents = self._domains, self._trace.parents
        for position in self._parents_first:
            above = parents[position]
            if (
                above >= 0
                and domains[above] != domains[position]
                and above not in self._trace.stand_ins
            ):
                yield self._exchange(position, above)

    def _exchange(self, position: int, above: int) -> Exchange:
        edges, operations = self._edges, self._trace.operations
        caller, callee = edges.caller_of(position), edges.callee(position)
        start_ns = self._starts_ns[position]
        request = self._message(caller.sent_by, caller.sent_ns, position, start_ns)
        one_way = operations[position].kind == CONSUMER or operations[above].kind == PRODUCER
        answers: tuple[Message, ...] = ()
        if caller.waited and not one_way and edges.answers_alone(position):
            answers = tuple(self._answers(caller, callee, start_ns))
        return Exchange(caller, callee, request, answers, one_way)

    def _answers(self, caller: Caller, callee: Callee, start_ns: int) -> Iterator[Message]:
        """First output and first content; last content and last event, or last byte and last byte.

        The first event may be a role chunk, which can precede the first token: it proves nothing.
        Nor does the last byte of a gateway where it would fit if it had been learned of sooner.
        """
        if callee.first_output_ns is not None and caller.first_content_ns is not None:
            yield self._message(
                callee.first_by, callee.first_output_ns, caller.position, caller.first_content_ns
            )
        if callee.late_by_ns is None:
            return
        received_ns = caller.last_byte_ns
        if callee.is_content and caller.last_event_ns is not None:
            received_ns = caller.last_event_ns
        too_long_ns = callee.last_output_ns - start_ns - (received_ns - caller.sent_ns)
        if 0 < too_long_ns <= callee.late_by_ns:
            return
        tail_ns = self._trace.assumptions.tail_ns
        yield self._message(
            callee.last_by, callee.last_output_ns, caller.position, received_ns, tail_ns
        )

    def declared(self) -> Iterator[Message]:
        """What links and joins say of operations that have different clocks."""
        operations = self._trace.operations
        speaking = [i for i, span in enumerate(operations) if span.links or span.events]
        if not speaking:
            return
        by_id = {span.span_id: position for position, span in enumerate(operations)}
        for position in speaking:
            span = operations[position]
            for link in span.links:
                other = by_id.get(link.span_id)
                if other is not None and link.trace_id in (b"", span.trace_id):
                    yield from self._linked(relationship(link.attributes), other, position)
            for joined in joined_ids(span):
                other = by_id.get(joined)
                if other is not None and self._trace.parents[other] == position:
                    yield from self._linked(LinkRelationship.JOINED, other, position)

    def _linked(self, said: str, before: int, after: int) -> Iterator[Message]:
        """What was waited for had ended when the other began, or before it ended."""
        if self._domains[before] == self._domains[after] or self._was_given_up(before):
            return
        if said == LinkRelationship.FOLLOWS:  # a try may be repeated while the first one goes on
            at_ns = self._starts_ns[after]
        elif said == LinkRelationship.JOINED:
            at_ns = self._edges.end_ns(after)
        else:
            return
        tail_ns = self._trace.assumptions.tail_ns
        yield self._message(before, self._edges.end_ns(before), after, at_ns, tail_ns)

    def _was_given_up(self, position: int) -> bool:
        facts: Facts | None = self._edges.facts(position)
        return facts is not None and (facts.cancelled or facts.failed or facts.lost)

    def _message(
        self, sender: int, left_ns: int, receiver: int, arrived_ns: int, tail_ns: int = 0
    ) -> Message:
        operations, domains, blurs_ns = self._trace.operations, self._domains, self._blurs_ns
        one, other = domains[sender], domains[receiver]
        fields = (
            one,
            other,
            left_ns,
            arrived_ns,
            blurs_ns[one] + blurs_ns[other],
            tail_ns,
            self._elapsed.drift_ns(sender, left_ns, receiver, arrived_ns),
            operations[sender].span_id,
            operations[receiver].span_id,
        )
        return tuple.__new__(Message, fields)  # a call of it costs twice as much
