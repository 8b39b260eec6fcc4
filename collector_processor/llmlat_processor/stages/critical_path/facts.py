"""What an operation's attributes and phase spans say about it, read once into plain fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from llmlat_processor.model import NO_ATTRIBUTES, Attributes, AttributeValue, Span
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
LEAF_LABELS: Final[Mapping[str, SectionLabel]] = {
    OperationName.EXECUTE_TOOL: SectionLabel.TOOL,
    OperationName.RETRIEVAL: SectionLabel.RETRIEVAL,
    SectionLabel.HUMAN_WAIT: SectionLabel.HUMAN_WAIT,
}
ENVELOPE_LABELS: Final = frozenset(SectionLabel(phase.value) for phase in ENVELOPES)
NESTED: Final[Mapping[SectionLabel, tuple[SectionLabel, ...]]] = {
    SectionLabel(phase.value): tuple(SectionLabel(outer.value) for outer in facts.nested_in)
    for phase, facts in FACTS.items()
    if facts.nested_in
}
CONTRACT_ORDER: Final[Mapping[SectionLabel, int]] = {
    SectionLabel(phase.value): facts.order for phase, facts in FACTS.items()
}
LAST_OUTPUT: Final = frozenset((SectionLabel.DECODE, SectionLabel.DETOKENIZE, SectionLabel.RELAY))
FIRST_OUTPUT: Final = (SectionLabel.PREFILL, SectionLabel.UPSTREAM)

CENTURY_S: Final = 3_155_760_000
"""No request takes longer; a larger number is no duration in seconds."""

_LABELS: Final[Mapping[str, SectionLabel]] = {
    phase.value: SectionLabel(phase.value) for phase in Phase
}
_DURATIONS: Final[Mapping[str, SectionLabel]] = {
    duration_attribute(phase): SectionLabel(phase.value) for phase in Phase
}
_REPORTED: Final[Mapping[str, tuple[SectionLabel, str]]] = {
    reported_duration_attribute(phase): (
        SectionLabel(phase.value),
        reported_evidence_attribute(phase),
    )
    for phase in Phase
}
_CANCELLED_ERRORS: Final = ("cancelled", "CancelledError")


class PhaseInterval(NamedTuple):
    """A recorded phase, placed on its operation's clock."""

    start_ns: int
    end_ns: int
    label: SectionLabel
    evidence: Evidence


class Facts:
    """The account that an operation gives of itself (plain slots: one per GenAI span).

    `durations` are phases without a position, in contract order; `totals_ns` these and the
    placed ones together; `reported` what the peer said about itself.
    `first_output_ns` and `last_output_ns` are instants on the operation's clock, known from
    phase spans at once and from durations once the operation has been walked.
    """

    __slots__ = (
        "_first_output",
        "attempt",
        "boundary",
        "cancelled",
        "chunk_seen",
        "consumer_ns",
        "durations",
        "failed",
        "first_content_ns",
        "first_is_tool_call",
        "first_output_ns",
        "has_envelopes",
        "has_phases",
        "last_output_ns",
        "lost",
        "nested",
        "operation",
        "ours",
        "outer",
        "overflowed",
        "relay_hold_ns",
        "reported",
        "streamed",
        "tool_call_id",
        "totals_ns",
        "unary",
    )

    def __init__(
        self, span: Span, start_ns: int, phases: Sequence[Span], phase_starts_ns: Sequence[int]
    ) -> None:
        attributes = span.attributes
        self.durations: dict[SectionLabel, int] = {}
        self.reported: dict[SectionLabel, tuple[int, Evidence]] = {}
        self._read_durations(attributes)
        self._read_identity(span, attributes)
        self._read_content(attributes, start_ns)
        self._place(phases, phase_starts_ns)
        self.overflowed = False

    def _read_durations(self, attributes: Attributes) -> None:
        for key, value in attributes.items():
            label = _DURATIONS.get(key)
            if label is not None:
                self.durations[label] = nanoseconds(value)
            elif key in _REPORTED:
                label, evidence_key = _REPORTED[key]
                self.reported[label] = (
                    nanoseconds(value),
                    _evidence(attributes.get(evidence_key), Evidence.REPORTED),
                )
        self.consumer_ns = self.durations.pop(SectionLabel.CONSUMER, 0)
        if len(self.durations) > 1:
            self.durations = _in_order(self.durations)

    def _read_identity(self, span: Span, attributes: Attributes) -> None:
        outcome = attributes.get(names.LLMLAT_ATTEMPT_OUTCOME)
        number = attributes.get(names.LLMLAT_ATTEMPT_NUMBER)
        error = str(attributes.get(names.ERROR_TYPE, ""))
        self.operation = _text(attributes.get(names.GEN_AI_OPERATION_NAME))
        self.boundary = _text(attributes.get(names.LLMLAT_BOUNDARY_NAME))
        self.ours = bool(self.boundary) or names.LLMLAT_CONTRACT_VERSION in attributes
        self.attempt = number if isinstance(number, int) else None
        self.lost = outcome == AttemptOutcome.LOST
        self.failed = span.is_error or outcome == AttemptOutcome.FAILED
        self.cancelled = (
            outcome == AttemptOutcome.CANCELLED
            or attributes.get(names.LLMLAT_STREAM_END) == StreamEnd.CANCELLED
            or error.rpartition(".")[2] in _CANCELLED_ERRORS
        )
        self.tool_call_id = _text(attributes.get(names.GEN_AI_TOOL_CALL_ID))
        self.unary = names.RPC_SYSTEM in attributes or names.RPC_SYSTEM_NAME in attributes
        self.relay_hold_ns = nanoseconds(attributes.get(names.LLMLAT_RELAY_HOLD_SUM))

    def _read_content(self, attributes: Attributes, start_ns: int) -> None:
        first = attributes.get(names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT)
        kind = attributes.get(names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND)
        self.first_content_ns = None if first is None else start_ns + nanoseconds(first)
        self.first_is_tool_call = kind == ContentKind.TOOL_CALL
        self.chunk_seen = names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK in attributes
        self.streamed = bool(attributes.get(names.GEN_AI_REQUEST_STREAM)) or first is not None

    def _place(self, phases: Sequence[Span], starts_ns: Sequence[int]) -> None:
        intervals = sorted(_intervals(phases, starts_ns)) if phases else ()
        self.nested = _apart([i for i in intervals if i.label in NESTED])
        self.outer = _apart([i for i in intervals if i.label not in NESTED])
        self.first_output_ns: int | None = None
        self.last_output_ns: int | None = None
        self._first_output = len(FIRST_OUTPUT)
        self.totals_ns = dict(self.durations)
        for start, end, label, _ in self.outer:
            self.totals_ns[label] = self.totals_ns.get(label, 0) + end - start
            self.note_output(label, end)
        self.has_envelopes = not ENVELOPE_LABELS.isdisjoint(self.totals_ns)
        self.has_phases = bool(self.totals_ns or self.nested)

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
    def is_inference(self) -> bool:
        """True for the operations that answer a prompt."""
        return self.operation in INFERENCES

    @property
    def is_agent(self) -> bool:
        """True for an agent's span."""
        return self.operation == OperationName.INVOKE_AGENT

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


def nanoseconds(seconds: AttributeValue) -> int:
    """A duration in integer ns; 0 for whatever is not a positive number of at most a century."""
    if isinstance(seconds, (int, float)) and 0 < seconds <= CENTURY_S:
        return round(seconds * 1e9)
    return 0


def _text(value: AttributeValue) -> str:
    return value if isinstance(value, str) else ""


def _evidence(value: AttributeValue, default: Evidence) -> Evidence:
    return Evidence.BOUNDED if value == Evidence.BOUNDED else default


def _intervals(phases: Sequence[Span], starts_ns: Sequence[int]) -> Iterable[PhaseInterval]:
    for span, start in zip(phases, starts_ns, strict=True):
        attributes = span.attributes or NO_ATTRIBUTES
        label = _LABELS.get(_text(attributes.get(names.LLMLAT_PHASE_NAME)))
        if label is None:  # an open enum: a phase of a later contract is unobserved time here
            continue
        declared = nanoseconds(attributes.get(names.LLMLAT_PHASE_DURATION))
        evidence = _evidence(attributes.get(names.LLMLAT_PHASE_EVIDENCE), Evidence.MEASURED)
        if attributes.get(names.LLMLAT_PHASE_EVIDENCE) == Evidence.REPORTED:
            evidence = Evidence.REPORTED
        yield PhaseInterval(start, start + (declared or span.duration_ns), label, evidence)


def _in_order(durations: dict[SectionLabel, int]) -> dict[SectionLabel, int]:
    """Durations in contract order; nested ones are taken out of the phase that holds them."""
    for label in NESTED.keys() & durations.keys():
        holder = next((outer for outer in NESTED[label] if outer in durations), None)
        if holder is not None:
            durations[label] = min(durations[label], durations[holder])
            durations[holder] -= durations[label]
    return dict(sorted(durations.items(), key=_by_contract_order))


def _by_contract_order(duration: tuple[SectionLabel, int]) -> int:
    return CONTRACT_ORDER[duration[0]]


def _apart(intervals: Iterable[PhaseInterval]) -> list[PhaseInterval]:
    """Phases of one boundary do not overlap; where data says otherwise, the earlier one stays."""
    apart: list[PhaseInterval] = []
    reached = -1
    for interval in intervals:
        if interval.start_ns >= reached:
            apart.append(interval)
        elif interval.end_ns > reached:
            apart.append(interval._replace(start_ns=reached))
        else:
            continue
        reached = interval.end_ns
    return apart
