"""What an operation's attributes and phase spans say about it, read once into plain fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from llmlat_processor.model import SERVER, Attributes, AttributeValue, Span
from llmlat_processor.native_account import Doubt, NativeAccount, without_unset
from llmlat_processor.phase_places import (
    LABELS,
    Place,
    apart,
    evidence,
    nanoseconds,
    places_of,
    text,
)
from llmlat_processor.producers import LATENCIES, READINGS, reading_of
from llmlat_processor.relations import is_unary
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
from llmlat_semconv.version import CONTRACT_VERSION

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
    **dict.fromkeys(LATENCIES, (None, "")),
    **dict.fromkeys(_READ_BY_NAME, (None, None)),
    **{duration_attribute(phase): (LABELS[phase.value], None) for phase in Phase},
    **{
        reported_duration_attribute(phase): (
            LABELS[phase.value],
            reported_evidence_attribute(phase),
        )
        for phase in Phase
    },
}
"""Attributes that are read: a duration has a label, a reported one also says how it is known.
The latencies of other producers, which have a "", mean nothing by their names alone."""

TELLING: Final = frozenset(_KNOWN) - LATENCIES - {names.RPC_SYSTEM, names.RPC_SYSTEM_NAME}
"""Attributes without any of which there is nothing to tell but the kind of call."""

# Members looked up once: on Python 3.11 each look-up costs as much as a call.
_CONSUMER: Final = SectionLabel.CONSUMER
_MEASURED: Final = Evidence.MEASURED
_REPORTED: Final = Evidence.REPORTED
_LOST: Final = AttemptOutcome.LOST
_FAILED: Final = AttemptOutcome.FAILED
_CANCELLED: Final = AttemptOutcome.CANCELLED
_TOOL_CALL: Final = ContentKind.TOOL_CALL
_INVOKE_AGENT: Final = OperationName.INVOKE_AGENT
_LEFT_EARLY: Final = (StreamEnd.CLOSED_EARLY, StreamEnd.ABANDONED)
_CANCELLED_ERRORS: Final = ("cancelled", "CancelledError")
_PREFILL_ORDER: Final = CONTRACT_ORDER[SectionLabel.PREFILL]

_OUR_MAJOR: Final = CONTRACT_VERSION.partition(".")[0]
_OUR_ROOT: Final = names.LLMLAT_CONTRACT_VERSION.partition(".")[0] + "."

_Said = dict[str, AttributeValue]

Interval: TypeAlias = Place


class Facts:
    """The account that an operation gives of itself (plain slots: one per GenAI span).

    `durations` are phases without a position, in contract order; `totals_ns` these and the placed
    ones together; `reported` what the peer said of itself; `doubts` what was said and cannot be.
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
        "doubts",
        "durations",
        "failed",
        "first_content_ns",
        "first_is_tool_call",
        "first_output_ns",
        "has_envelopes",
        "has_phases",
        "is_agent",
        "is_inference",
        "known_by",
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
        "unread",
    )

    def __init__(
        self, span: Span, start_ns: int, phases: Sequence[Span], phase_starts_ns: Sequence[int]
    ) -> None:
        self.durations: dict[SectionLabel, int] = {}
        self.reported: dict[SectionLabel, tuple[int, Evidence]] = {}
        self.doubts: Sequence[Doubt] = ()
        self.known_by = _MEASURED
        self.unread = False
        said = self._read(span.attributes)
        major = text(said.get(names.LLMLAT_CONTRACT_VERSION)).partition(".")[0]
        if major != _OUR_MAJOR and major.isdigit():
            said = self._without_what_is_not_ours(said)
            phases = phase_starts_ns = ()
        if self.reported:
            self.doubts = without_unset(self.reported)
        native = self._read_native(span, phases) if span.scope in READINGS else None
        self._identify(span, said)
        self._note_content(said, start_ns)
        self._place(phases, phase_starts_ns)
        if native is not None and self.known_by is _MEASURED:
            self.doubts = (*self.doubts, *native.differing_from(self.totals_ns))
        elif native is not None and native.first_output_ns is not None:
            self._put_around(start_ns + native.first_output_ns, start_ns, span.duration_ns)
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
                if evidence_key is None:
                    said[key] = value
                else:
                    self.unread = True  # unless it is of a producer that is known
                continue
            duration_ns = nanoseconds(value)
            if duration_ns is None:
                continue
            if evidence_key is None:
                self.durations[label] = duration_ns
            else:
                known_by = evidence(attributes.get(evidence_key), _REPORTED)
                self.reported[label] = (duration_ns, known_by)
        self.consumer_ns = self.durations.pop(_CONSUMER, 0)
        if len(self.durations) > 1:
            self.durations = in_order(self.durations)
        return said

    def _without_what_is_not_ours(self, said: _Said) -> _Said:
        """Of another major version of the contract nothing is read: its edges may be others."""
        self.durations, self.reported, self.consumer_ns, self.unread = {}, {}, 0, True
        return {key: value for key, value in said.items() if not key.startswith(_OUR_ROOT)}

    def _read_native(self, span: Span, phases: Sequence[Span]) -> NativeAccount | None:
        """What a producer says of its own span; where we have an account of it, that one stands."""
        reading = reading_of(span)
        if reading is None:
            return None
        self.unread = False
        account = NativeAccount(span, reading)
        self.doubts = account.doubts
        known_by = (each.attributes.get(names.LLMLAT_PHASE_EVIDENCE) for each in phases)
        if self.durations or any(each != _REPORTED for each in known_by):
            return account
        placed = {each.attributes.get(names.LLMLAT_PHASE_NAME) for each in phases}
        sizes = {label: size for label, (size, _) in account.durations.items()}
        self.durations = in_order({each: sizes[each] for each in sizes if each not in placed})
        self.known_by = _REPORTED
        return account

    def _put_around(self, first_output_ns: int, start_ns: int, whole_ns: int) -> None:
        """Durations that begin and end at the first output: it is known when that was, or later.

        ···· queue ██ prefill ████│ decode ███████ ····     ···· is no phase, however long
        """
        sizes = dict(self.durations)
        before = [label for label in sizes if CONTRACT_ORDER[label] <= _PREFILL_ORDER]
        latest_ns = start_ns + whole_ns - sum(sizes.values())
        at_ns = min(first_output_ns - sum(map(sizes.__getitem__, before)), latest_ns)
        if SectionLabel.PREFILL not in sizes or at_ns < start_ns or self.outer:
            return
        places: list[Interval] = []
        for label, size in sizes.items():
            places.append((at_ns, at_ns + size, label, self.known_by))
            at_ns += size
        self.put(places)

    def _identify(self, span: Span, said: _Said) -> None:
        outcome = said.get(names.LLMLAT_ATTEMPT_OUTCOME)
        number = said.get(names.LLMLAT_ATTEMPT_NUMBER)
        self.operation = text(said.get(names.GEN_AI_OPERATION_NAME))
        self.boundary = text(said.get(names.LLMLAT_BOUNDARY_NAME))
        self.ours = bool(self.boundary) or names.LLMLAT_CONTRACT_VERSION in said
        self.attempt = number if type(number) is int else None  # True is an int, but no number
        self.lost = outcome == _LOST
        end = said.get(names.LLMLAT_STREAM_END)
        error = text(said.get(names.ERROR_TYPE))
        self.failed = span.is_error or bool(error) or _FAILED in (outcome, end)
        self.cancelled = (
            _CANCELLED in (outcome, end) or error.rpartition(".")[2] in _CANCELLED_ERRORS
        )
        self.tool_call_id = text(said.get(names.GEN_AI_TOOL_CALL_ID))
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
            intervals = places_of(phases, starts_ns)
            nested = [interval for interval in intervals if interval[2] in NESTED]
            if nested:
                self.nested = apart(nested)
                intervals = [interval for interval in intervals if interval[2] not in NESTED]
            self.outer = apart(intervals)
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
                    interval = (end - size, end, label, self.known_by)
                    self.nested = apart(sorted((*self.nested, interval)))
                    del self.durations[label]
                    break

    def put(self, places: Iterable[Interval]) -> None:
        """Durations turn out to have places."""
        for _, end, label, _ in places:
            del self.durations[label]
            self.note_output(label, end)
        self.outer = apart(sorted((*self.outer, *places)))

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
