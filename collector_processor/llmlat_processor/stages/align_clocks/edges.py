"""What a caller and a callee know of one exchange: instants, each on its own side's clock.

caller   ├ sent ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ first content ▒▒▒▒▒▒▒▒▒▒ last event ▒ last byte ┤
callee       ├ start ▒▒▒▒▒ first output ▒▒▒▒▒▒▒▒ last output ▒ end ┤
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from llmlat_processor.facts import FIRST_OUTPUT, LAST_OUTPUT, TELLING, Facts
from llmlat_processor.model import CLIENT, CONSUMER, INTERNAL, SERVER, Trace
from llmlat_processor.relations import ends_with_its_answer, is_remote, is_unary
from llmlat_processor.stages.align_clocks.placement import Placement
from llmlat_semconv import attributes as names
from llmlat_semconv.values import Evidence, SectionLabel

MOST_LEVELS: Final = 16
"""So far above an operation its outputs are looked for by who was called from elsewhere."""

MILLISECOND_NS: Final = 1_000_000
"""The coarsest that stamps commonly are."""

_OUTPUTS: Final = frozenset(label.value for label in (*FIRST_OUTPUT, *LAST_OUTPUT))
_SENDS: Final = (SectionLabel.SEND, SectionLabel.UPSTREAM)
_STREAMS: Final = (SectionLabel.STREAM, SectionLabel.UPSTREAM_STREAM)


class Caller:
    """The caller's side (plain slots: hot path).

    Attributes:
        position: index of the operation.
        sent_by: index of the operation that sent the request: itself, or its transport.
        sent_ns: no byte of the request was sent before this.
        first_content_ns: when it had the first content; None where it doesn't say.
        last_event_ns: when it had the last event; None where it doesn't say.
        last_byte_ns: when it had the last byte, if it waited for that; else the end of its span.
        waited: it is known to have lasted to the callee's last byte.
    """

    __slots__ = (
        "first_content_ns",
        "last_byte_ns",
        "last_event_ns",
        "position",
        "sent_by",
        "sent_ns",
        "waited",
    )

    def __init__(
        self,
        position: int,
        sent_by: int,
        sent_ns: int,
        first_content_ns: int | None,
        last_event_ns: int | None,
        last_byte_ns: int,
        waited: bool,
    ) -> None:
        self.position = position
        self.sent_by = sent_by
        self.sent_ns = sent_ns
        self.first_content_ns = first_content_ns
        self.last_event_ns = last_event_ns
        self.last_byte_ns = last_byte_ns
        self.waited = waited


class Callee:
    """The callee's side (plain slots: hot path).

    Attributes:
        position: index of the operation.
        first_output_ns: when the first output was there; None where nothing says so.
        first_by: index of the operation that says so.
        last_output_ns: when the last output was there; the end of the span where nothing says so.
        last_by: index of the operation that says so.
        is_content: the last output is content, not the last byte.
        late_by_ns: the last output may have been there so much earlier than it was learned of; None
            where nobody knows how much.
    """

    __slots__ = (
        "first_by",
        "first_output_ns",
        "is_content",
        "last_by",
        "last_output_ns",
        "late_by_ns",
        "position",
    )

    def __init__(
        self,
        position: int,
        first_output_ns: int | None,
        first_by: int,
        last_output_ns: int,
        last_by: int,
        is_content: bool,
        late_by_ns: int | None,
    ) -> None:
        self.position = position
        self.first_output_ns = first_output_ns
        self.first_by = first_by
        self.last_output_ns = last_output_ns
        self.last_by = last_by
        self.is_content = is_content
        self.late_by_ns = late_by_ns


class Edges:
    """Reads the edges of the operations of one trace, each at most once.

    Attributes:
        read: what operations say of themselves, by their index, as far as it was asked for.
    """

    def __init__(
        self, trace: Trace, placement: Placement, children: Mapping[int, Sequence[int]]
    ) -> None:
        self._operations = trace.operations
        self._parents = trace.parents
        self._phases = trace.phases
        self._starts_ns = placement.starts_ns
        self._phase_starts_ns = placement.phase_starts_ns
        self._late_ns = trace.assumptions.tail_ns + MILLISECOND_NS
        self.read: dict[int, Facts | None] = {}
        self._callers: dict[int, Caller] = {}
        self._children = children
        self._remote = _remote(trace, placement.domains)
        self._attempts: dict[int, int] = {}
        self._tellers: dict[int, list[int]] = {}
        self._transports: dict[int, int] = {}
        self._remote_kinds: dict[int, Counter[int]] = {}
        for position, span in enumerate(trace.operations):
            if span.attributes and names.LLMLAT_ATTEMPT_NUMBER in span.attributes:
                self._note_attempt(position)
        for position, phases in trace.phases.items():
            if any(each.attributes.get(names.LLMLAT_PHASE_NAME) in _OUTPUTS for each in phases):
                self._note_outputs(position)

    def facts(self, position: int) -> Facts | None:
        """What an operation says of itself; None where it says nothing of that kind."""
        if position in self.read:
            return self.read[position]
        span = self._operations[position]
        facts = None
        if position in self._phases or not TELLING.isdisjoint(span.attributes):
            facts = Facts(
                span,
                self._starts_ns[position],
                self._phases.get(position, ()),
                self._phase_starts_ns.get(position, ()),
            )
        self.read[position] = facts
        return facts

    def _note_attempt(self, position: int) -> None:
        """Of the attempts below one operation the first is remembered."""
        facts = self.facts(position)
        if facts is None or facts.attempt is None or self._remote[position]:
            return
        parent = self._parents[position]
        first = self._attempts.get(parent, position)
        self._attempts[parent] = min(first, position, key=self._place_of_attempt)

    def _note_outputs(self, position: int) -> None:
        """Those above who were called from elsewhere may ask when it had an output."""
        facts = self.facts(position)
        if facts is None or facts.failed or self._remote[position]:
            return
        parent = self._parents[position]
        for _ in range(MOST_LEVELS):
            if parent < 0:
                break
            self._tellers.setdefault(parent, []).append(position)
            if self._remote[parent]:
                break
            parent = self._parents[parent]

    def _place_of_attempt(self, position: int) -> tuple[int, int, bytes]:
        facts = self.read[position]
        number = 0 if facts is None or facts.attempt is None else facts.attempt
        return number, self._starts_ns[position], self._operations[position].span_id

    def end_ns(self, position: int) -> int:
        """Where an operation ends on its clock."""
        return self._starts_ns[position] + self._operations[position].duration_ns

    # ── The caller's side ────────────────────────────────────────────────────────────────────────

    def caller_of(self, position: int) -> Caller:
        """The caller of an operation with a parent.

        Attempt 1 has sent the operation's own id upstream, so what answered it hangs under the
        operation; and a transport (HTTP under an inference) may end at the response's headers.
        """
        parent = self._parents[position]
        if parent not in self._callers:
            first = self._attempts.get(parent)
            above = self._inference_above(parent) if first is None else None
            if first is not None:
                self._callers[parent] = self._caller(first, first)
            elif above is not None:
                self._callers[parent] = self._caller(above, parent)
            else:
                self._callers[parent] = self._caller(parent, parent)
        return self._callers[parent]

    def _caller(self, position: int, sender: int) -> Caller:
        """The caller's side: of a call whose request another operation of its process sent."""
        facts = self.facts(position)
        start_ns, end_ns = self._starts_ns[position], self.end_ns(position)
        if facts is None:
            return Caller(
                position, position, start_ns, None, None, end_ns, self._is_unary(position)
            )
        sends, last_event_ns, last_byte_ns = [], None, end_ns
        for start, end, label, _ in facts.outer:
            if label in _SENDS:
                sends.append(start)
            elif label in _STREAMS:
                last_event_ns = end  # of several the last: they are in order
            elif label is SectionLabel.FINALIZE:
                last_byte_ns = end
        sent_ns, sent_by = min(sends, default=start_ns), position
        if self._starts_ns[sender] > sent_ns:
            sent_ns, sent_by = self._starts_ns[sender], sender
        return Caller(
            position,
            sent_by,
            sent_ns,
            facts.first_content_ns,
            last_event_ns,
            last_byte_ns,
            self._waited(position, facts),
        )

    def _is_unary(self, position: int) -> bool:
        """A client of a unary RPC that says nothing else, and went well."""
        span = self._operations[position]
        return span.kind == CLIENT and not span.is_error and is_unary(span.attributes)

    def _waited(self, position: int, facts: Facts) -> bool:
        """Known to last to the last byte, and not cut short; an agent need not, nor a server."""
        if not facts.saw_last_byte or facts.cancelled or facts.failed or facts.lost:
            return False
        kind = self._operations[position].kind
        if kind == CLIENT or facts.is_inference or facts.has_envelopes:
            return True
        if facts.is_agent or kind == SERVER:
            return False
        return facts.attempt is not None or len(self._children.get(position, ())) == 1

    def _inference_above(self, position: int) -> int | None:
        """The inference whose only transport an operation is."""
        above = self._parents[position]
        facts = self.facts(above) if above >= 0 else None
        if (
            facts is None
            or not self._is_transport(position)
            or not (facts.is_inference or facts.attempt is not None)
        ):
            return None
        if above not in self._transports:
            self._transports[above] = sum(map(self._is_transport, self._children[above]))
        if self.end_ns(position) > self.end_ns(above) + self._late_ns:
            return None  # it was sent for something else, such as a log
        return above if self._transports[above] == 1 else None

    def _is_transport(self, position: int) -> bool:
        if self._operations[position].kind != CLIENT or self._remote[position]:
            return False
        facts = self.facts(position)
        return facts is None or facts.is_plain

    def answers_alone(self, position: int) -> bool:
        """Whether an operation is the one that its caller waited for.

        Of several nobody knows: one may be a try that was given up, or work that was left behind.
        What we measured ourselves is told apart by attempts.
        """
        facts = self.facts(position)
        if facts is not None and facts.ours:
            return True
        parent = self._parents[position]
        if len(self._children[parent]) == 1:
            return True
        if parent not in self._remote_kinds:
            self._remote_kinds[parent] = Counter(
                self._operations[child].kind
                for child in self._children[parent]
                if self._remote[child]
            )
        kinds = self._remote_kinds[parent]
        if self._operations[position].kind == SERVER:
            return kinds[SERVER] == 1
        return kinds.total() - kinds[CONSUMER] == 1

    # ── The callee's side ────────────────────────────────────────────────────────────────────────

    def callee(self, position: int) -> Callee:
        """What an operation that was called from elsewhere knows of its outputs.

        What it does not know itself, the one local descendant that does is asked. Of several nobody
        knows whose output went to the caller.
        """
        end_ns, facts = self.end_ns(position), self.facts(position)
        tellers = [position, *self._tellers.get(position, ())]
        is_ours = facts is not None and facts.ours
        late_by_ns = 0 if is_ours or ends_with_its_answer(self._operations[position]) else None
        if facts is None and len(tellers) == 1:
            return Callee(position, None, position, end_ns, position, False, late_by_ns)
        first_ns, first_by = self._told(tellers, "first_output_ns", end_ns)
        if facts is not None and facts.is_gateway:
            return self._gateway(position, facts, first_ns, first_by)
        last_ns, last_by = self._told(tellers, "last_output_ns", end_ns)
        if last_ns is None:
            return Callee(position, first_ns, first_by, end_ns, position, False, late_by_ns)
        return Callee(position, first_ns, first_by, last_ns, last_by, True, 0)

    def _told(self, tellers: Sequence[int], edge: str, end_ns: int) -> tuple[int | None, int]:
        """An edge and who tells it: the operation itself, else the only other one that does."""
        told = [
            (at_ns, position)
            for position in tellers
            for facts in [self.facts(position)]
            if facts is not None
            for at_ns in [getattr(facts, edge)]
            if at_ns is not None
        ]
        if not told or (len(told) > 1 and told[0][1] != tellers[0]) or told[0][0] > end_ns:
            return None, tellers[0]
        return told[0]

    def _gateway(self, position: int, facts: Facts, first_ns: int | None, first_by: int) -> Callee:
        """A gateway learns late that its last byte has gone, by at most what it says it relayed.

        Where its relay is an upper bound or has no place, its last byte proves nothing; that the
        first upstream event came before the caller's first content still does.
        """
        relay = next((each for each in facts.outer if each[2] is SectionLabel.RELAY), None)
        if relay is None:
            return Callee(
                position, first_ns, first_by, self.end_ns(position), position, False, None
            )
        start_ns, end_ns, _, evidence = relay
        if evidence is Evidence.MEASURED:
            return Callee(position, None, first_by, end_ns, position, False, end_ns - start_ns)
        return Callee(position, first_ns, first_by, end_ns, position, False, None)


def _remote(trace: Trace, domains: Sequence[str]) -> list[bool]:
    """Per operation, whether its parent is another process or has another clock."""
    operations = trace.operations
    remote = [False] * len(operations)
    for position, above in enumerate(trace.parents):
        if above < 0:
            continue
        span, parent = operations[position], operations[above]
        if domains[position] != domains[above]:
            remote[position] = True
        elif span.kind != INTERNAL or span.flags or span.resource is not parent.resource:
            remote[position] = is_remote(span, parent)
    return remote
