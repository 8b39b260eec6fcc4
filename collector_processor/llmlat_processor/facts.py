"""What an operation's attributes and phase spans say about it, read once into plain fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from llmlat_processor.model import SERVER, Attributes, AttributeValue, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    ENVELOPES,
    FACTS,
    Phase,
    duration_attribute,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.values import (
    AttemptOutcome,
    Boundary,
    ContentKind,
    Evidence,
    OperationName,
    SectionLabel,
    StreamEnd,
)

INFERENCES: Final = frozenset(
    (OperationName.CHAT, OperationName.TEXT_COMPLETION, OperationName.GENERATE_CONTENT)
)
LEAF_LABELS: Final[dict[str, SectionLabel]] = {
    OperationName.EXECUTE_TOOL: SectionLabel.TOOL,
    OperationName.RETRIEVAL: SectionLabel.RETRIEVAL,
    SectionLabel.HUMAN_WAIT: SectionLabel.HUMAN_WAIT,
}
ENVELOPE_LABELS: Final = frozenset(SectionLabel(phase.value) for phase in ENVELOPES)
NESTED: Final[dict[SectionLabel, tuple[SectionLabel, ...]]] = {
    SectionLabel(phase.value): tuple(SectionLabel(outer.value) for outer in facts.nested_in)
    for phase, facts in FACTS.items()
    if facts.nested_in
}


def _in_turn() -> Iterable[Phase]:
    """The phases of the contract, in its order; a gateway's call ends as any client's does.

    `finalize` stands among the client's phases. On a call of a gateway's it comes after those that
    the gateway has in place of `wait` and `stream`; nothing else of the two ever meets.
    """
    for phase in sorted(FACTS, key=lambda phase: FACTS[phase].order):
        if phase is not Phase.FINALIZE:
            yield phase
        if phase is Phase.UPSTREAM_STREAM:
            yield Phase.FINALIZE


CONTRACT_ORDER: Final[dict[SectionLabel, int]] = {
    SectionLabel(phase.value): place for place, phase in enumerate(_in_turn())
}
ENGINE_LABELS: Final = frozenset(
    SectionLabel(phase.value) for phase, facts in FACTS.items() if facts.boundary is Boundary.ENGINE
)
LAST_OUTPUT: Final = frozenset((SectionLabel.DECODE, SectionLabel.DETOKENIZE, SectionLabel.RELAY))
FIRST_OUTPUT: Final = (SectionLabel.PREFILL, SectionLabel.UPSTREAM)

CENTURY_S: Final = 3_155_760_000
"""No request takes longer; a larger number is no duration in seconds."""

_LABELS: Final[dict[str, SectionLabel]] = {
    phase.value: SectionLabel(phase.value) for phase in Phase
}
_READ_BY_NAME: Final = (
    names.ERROR_TYPE,
    names.GEN_AI_OPERATION_NAME,
    names.GEN_AI_REQUEST_STREAM,
    names.GEN_AI_TOOL_CALL_ID,
    names.LLMLAT_ATTEMPT_NUMBER,
    names.LLMLAT_ATTEMPT_OUTCOME,
    names.LLMLAT_BOUNDARY_NAME,
    names.LLMLAT_CONTRACT_VERSION,
    names.LLMLAT_RELAY_HOLD_SUM,
    names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND,
    names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT,
    names.LLMLAT_STREAM_END,
    names.LLMLAT_STREAM_UNREAD,
    names.RPC_SYSTEM,
    names.RPC_SYSTEM_NAME,
)
_KNOWN: Final[dict[str, tuple[SectionLabel | None, str | None]]] = {
    **dict.fromkeys(_READ_BY_NAME, (None, None)),
    **{duration_attribute(phase): (_LABELS[phase.value], None) for phase in Phase},
    **{
        reported_duration_attribute(phase): (
            _LABELS[phase.value],
            reported_evidence_attribute(phase),
        )
        for phase in Phase
    },
}
"""Attributes that are read: a duration has a label, a reported one also says how it is known."""

UNARY_SYSTEMS: Final = frozenset(("grpc", "connect_rpc", "jsonrpc"))
TELLING: Final = frozenset(_KNOWN) - {names.RPC_SYSTEM, names.RPC_SYSTEM_NAME}
"""Attributes without any of which there is nothing to tell but the kind of call."""

# Members looked up once: on Python 3.11 each look-up costs as much as a call.
_CONSUMER: Final = SectionLabel.CONSUMER
_MEASURED: Final = Evidence.MEASURED
_BOUNDED: Final = Evidence.BOUNDED
_REPORTED: Final = Evidence.REPORTED
_EVIDENCE: Final[dict[str, Evidence]] = {each.value: each for each in (_BOUNDED, _REPORTED)}
_LOST: Final = AttemptOutcome.LOST
_FAILED: Final = AttemptOutcome.FAILED
_CANCELLED: Final = AttemptOutcome.CANCELLED
_TOOL_CALL: Final = ContentKind.TOOL_CALL
_INVOKE_AGENT: Final = OperationName.INVOKE_AGENT
_LEFT_EARLY: Final = (StreamEnd.CLOSED_EARLY, StreamEnd.ABANDONED)
_CANCELLED_ERRORS: Final = ("cancelled", "CancelledError")


_Said = dict[str, AttributeValue]

Interval = tuple[int, int, SectionLabel, Evidence]
"""A recorded phase on its operation's clock: (start, end, label, evidence)."""


class Facts:
    """The account that an operation gives of itself (plain slots: one per GenAI span).

    `durations` are phases without a position, in contract order; `totals_ns` these and the
    placed ones together; `reported` what the peer said about itself.
    `overflow_ns` is by how much durations exceed the whole operation: then none of them counts.
    `first_output_ns` and `last_output_ns` are instants on the operation's clock, known from
    phase spans at once and from durations once the operation has been walked.
    """

    __slots__ = (
        "_first_output",
        "attempt",
        "boundary",
        "cancelled",
        "consumer_ns",
        "durations",
        "failed",
        "first_content_ns",
        "first_is_tool_call",
        "first_output_ns",
        "has_envelopes",
        "has_phases",
        "is_agent",
        "is_inference",
        "last_output_ns",
        "lost",
        "nested",
        "operation",
        "ours",
        "outer",
        "overflow_ns",
        "relay_hold_ns",
        "reported",
        "saw_last_byte",
        "streamed",
        "tool_call_id",
        "totals_ns",
    )

    def __init__(
        self, span: Span, start_ns: int, phases: Sequence[Span], phase_starts_ns: Sequence[int]
    ) -> None:
        self.durations: dict[SectionLabel, int] = {}
        self.reported: dict[SectionLabel, tuple[int, Evidence]] = {}
        said = self._read(span.attributes)
        self._identify(span, said)
        self._note_content(said, start_ns)
        self._place(phases, phase_starts_ns)
        self.overflow_ns = 0

    def _read(self, attributes: Attributes) -> _Said:
        """Durations go where they belong; what else is known is returned by attribute name."""
        said: _Said = {}
        for key, value in attributes.items():
            known = _KNOWN.get(key)
            if known is None:
                continue
            label, evidence_key = known
            if label is None:
                said[key] = value
                continue
            duration_ns = nanoseconds(value)
            if duration_ns is None:
                continue
            if evidence_key is None:
                self.durations[label] = duration_ns
            else:
                evidence = _evidence(attributes.get(evidence_key), _REPORTED)
                self.reported[label] = (duration_ns, evidence)
        self.consumer_ns = self.durations.pop(_CONSUMER, 0)
        if len(self.durations) > 1:
            self.durations = in_order(self.durations)
        return said

    def _identify(self, span: Span, said: _Said) -> None:
        outcome = said.get(names.LLMLAT_ATTEMPT_OUTCOME)
        number = said.get(names.LLMLAT_ATTEMPT_NUMBER)
        self.operation = _text(said.get(names.GEN_AI_OPERATION_NAME))
        self.boundary = _text(said.get(names.LLMLAT_BOUNDARY_NAME))
        self.ours = bool(self.boundary) or names.LLMLAT_CONTRACT_VERSION in said
        self.attempt = number if type(number) is int else None  # True is an int, but no number
        self.lost = outcome == _LOST
        end = said.get(names.LLMLAT_STREAM_END)
        error = _text(said.get(names.ERROR_TYPE))
        self.failed = span.is_error or bool(error) or _FAILED in (outcome, end)
        self.cancelled = (
            _CANCELLED in (outcome, end) or error.rpartition(".")[2] in _CANCELLED_ERRORS
        )
        self.tool_call_id = _text(said.get(names.GEN_AI_TOOL_CALL_ID))
        unary = span.kind != SERVER and is_unary(said)
        has_left = end in _LEFT_EARLY or said.get(names.LLMLAT_STREAM_UNREAD) is True
        self.saw_last_byte = not has_left and (self.ours or bool(self.operation) or unary)
        self.relay_hold_ns = nanoseconds(said.get(names.LLMLAT_RELAY_HOLD_SUM)) or 0
        self.is_inference = self.operation in INFERENCES
        self.is_agent = self.operation == _INVOKE_AGENT

    def _note_content(self, said: _Said, start_ns: int) -> None:
        first = nanoseconds(said.get(names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT))
        self.first_content_ns = None if first is None else start_ns + first
        self.first_is_tool_call = said.get(names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND) == _TOOL_CALL
        self.streamed = first is not None or bool(said.get(names.GEN_AI_REQUEST_STREAM))

    def _place(self, phases: Sequence[Span], starts_ns: Sequence[int]) -> None:
        self.nested: list[Interval] = []
        self.outer: list[Interval] = []
        self.first_output_ns: int | None = None
        self.last_output_ns: int | None = None
        self._first_output = len(FIRST_OUTPUT)
        self.totals_ns = dict(self.durations)
        if phases:
            intervals = _intervals(phases, starts_ns)
            nested = [interval for interval in intervals if interval[2] in NESTED]
            if nested:
                self.nested = _apart(nested)
                intervals = [interval for interval in intervals if interval[2] not in NESTED]
            self.outer = _apart(intervals)
            self._place_nested_durations()
        for start, end, label, _ in self.outer:
            self.totals_ns[label] = self.totals_ns.get(label, 0) + end - start
            self.note_output(label, end)
        self.has_envelopes = not ENVELOPE_LABELS.isdisjoint(self.totals_ns)
        self.has_phases = bool(self.totals_ns or self.nested)

    def _place_nested_durations(self) -> None:
        """A nested phase known by its duration lies in the placed phase that holds it.

        Where in it is not known; its end is as good a place as any, and nothing else moves.
        """
        for label, holders in NESTED.items():
            size = self.durations.get(label)
            if size is None:
                continue
            for start, end, holder, _ in self.outer:
                if holder in holders and size <= end - start:
                    interval = (end - size, end, label, _MEASURED)
                    self.nested = _apart(sorted((*self.nested, interval)))
                    del self.durations[label]
                    break

    def put(self, places: Iterable[Interval]) -> None:
        """Durations turn out to have places."""
        for _, end, label, _ in places:
            del self.durations[label]
            self.note_output(label, end)
        self.outer = _apart(sorted((*self.outer, *places)))

    def move(self, by_ns: int) -> None:
        """The operation turns out to stand elsewhere, and all instants with it."""
        self.outer = [(start + by_ns, end + by_ns, a, b) for start, end, a, b in self.outer]
        self.nested = [(start + by_ns, end + by_ns, a, b) for start, end, a, b in self.nested]
        for edge in ("first_content_ns", "first_output_ns", "last_output_ns"):
            at_ns = getattr(self, edge)
            if at_ns is not None:
                setattr(self, edge, at_ns + by_ns)

    def note_output(self, label: SectionLabel, end_ns: int) -> None:
        """A phase ends here; for some phases that is the first or the last output."""
        if label in LAST_OUTPUT:
            self.last_output_ns = max(self.last_output_ns or end_ns, end_ns)
        if label in FIRST_OUTPUT:
            rank = FIRST_OUTPUT.index(label)
            if rank <= self._first_output:
                self._first_output = rank
                self.first_output_ns = end_ns

    @property
    def is_gateway(self) -> bool:
        """True for a span of a gateway."""
        return self.boundary == Boundary.GATEWAY

    @property
    def is_plain(self) -> bool:
        """True where neither phases nor GenAI attributes say anything about the operation."""
        return not (self.has_phases or self.reported or self.operation or self.ours) and (
            self.attempt is None
        )

    def total_ns(self, label: SectionLabel) -> int:
        """How long a phase took in all, wherever it lies."""
        return self.totals_ns.get(label, 0)


def attempt_facts(span: Span, start_ns: int, number: int) -> Facts:
    """Facts of a span that says nothing itself but is known to be an attempt."""
    facts = Facts(span, start_ns, (), ())
    facts.attempt = number
    return facts


def is_unary(said: Attributes) -> bool:
    """Whether a client's call is a remote procedure's, so that it lasts until its answer is whole.

    Others are named so as well: a call of a cloud's API may only put something in a queue.
    """
    system = said.get(names.RPC_SYSTEM) or said.get(names.RPC_SYSTEM_NAME)
    return isinstance(system, str) and system in UNARY_SYSTEMS


def nanoseconds(seconds: AttributeValue) -> int | None:
    """A duration in integer ns; None for whatever is no number of seconds up to a century."""
    if type(seconds) is float:  # nearly all of them
        return round(seconds * 1e9) if 0.0 <= seconds <= CENTURY_S else None
    if isinstance(seconds, (int, float)) and 0 <= seconds <= CENTURY_S and seconds is not True:
        return round(seconds * 1e9) if seconds is not False else None
    return None


def _text(value: AttributeValue) -> str:
    return value if isinstance(value, str) else ""


def _evidence(value: AttributeValue, default: Evidence) -> Evidence:
    return _EVIDENCE.get(value, default) if isinstance(value, str) else default


def _intervals(phases: Sequence[Span], starts_ns: Sequence[int]) -> list[Interval]:
    """The phases in the order of their starts."""
    intervals: list[Interval] = []
    for span, start in zip(phases, starts_ns, strict=True):
        attributes = span.attributes
        label = _LABELS.get(_text(attributes.get(names.LLMLAT_PHASE_NAME)))
        if label is None:  # an open enum: a phase of a later contract is unobserved time here
            continue
        size = nanoseconds(attributes.get(names.LLMLAT_PHASE_DURATION))
        if size is None:
            size = span.end_ns - span.start_ns
        evidence = _evidence(attributes.get(names.LLMLAT_PHASE_EVIDENCE), _MEASURED)
        intervals.append((start, start + size, label, evidence))
    intervals.sort()
    return intervals


def in_order(durations: dict[SectionLabel, int]) -> dict[SectionLabel, int]:
    """Durations in contract order; nested ones are taken out of the phase that holds them."""
    for label, holders in NESTED.items():
        if label in durations:
            holder = next((outer for outer in holders if outer in durations), None)
            if holder is not None:
                durations[label] = min(durations[label], durations[holder])
                durations[holder] -= durations[label]
    places = [CONTRACT_ORDER[label] for label in durations]
    if places == sorted(places):  # as nearly everybody has them
        return durations
    return dict(sorted(durations.items(), key=_by_contract_order))


def _by_contract_order(duration: tuple[SectionLabel, int]) -> int:
    return CONTRACT_ORDER[duration[0]]


def _apart(intervals: Iterable[Interval]) -> list[Interval]:
    """Phases of one boundary do not overlap; where data says otherwise, the earlier one stays."""
    apart: list[Interval] = []
    reached = -1
    for interval in intervals:
        start, end, label, evidence = interval
        if start >= reached:
            apart.append(interval)
        elif end > reached:
            apart.append((reached, end, label, evidence))
        else:
            continue
        reached = end
    return apart
