"""A trace on its way through the stages: its operations, their clocks, what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llmlat_processor.model.clocks import NO_CLOCKS, Clocks, Interval, Message
from llmlat_processor.model.spans import Span
from llmlat_semconv.values import FindingKind


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the stages take for granted; every result states what it used.

    Attributes:
        tail_ns: how long a server's span may go on after its last output where the span's end
            is not a last-output edge.
        resolution_ns: the clocks' resolution; None detects it per domain.
        received_ns: wall time of receipt; None leaves stamps from the future unchallenged.
        drift_ppm: how fast two clocks may part, in millionths of the time that passes.
    """

    tail_ns: int = 5_000_000
    resolution_ns: int | None = None
    received_ns: int | None = None
    drift_ppm: int = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with the data, said instead of being repaired.

    Attributes:
        kind: which condition holds.
        of: the span that it is about; the first witness.
        amount_ns: by how much, where the condition has an amount.
        witnesses: ids of the spans that together prove it.
        epsilon_ns: the tolerance that was granted before it was called a finding.
        note: one sentence for a person.
        interval: of clock of `of` - clock of its caller, where the condition has one: wall clocks.
        proof: the messages that contradict each other. Round a circle of domains their limits sum
            to less than 0; of one exchange they do without the drift since the trace's start.
    """

    kind: FindingKind
    of: bytes
    amount_ns: int | None = None
    witnesses: tuple[bytes, ...] = ()
    epsilon_ns: int | None = None
    note: str = ""
    interval: Interval | None = None
    proof: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace as a forest of operations.

    Attributes:
        operations: every operation, in (start, span id, kind) order; set-aside ones left out.
        parents: for each operation the index of its parent, or -1 where it has none.
        phases: phase spans by the index of the operation whose time they label.
        roots: indices of the operations without a parent id, or of provisional roots.
        stand_ins: indices of those roots that only stand for a parent that never came: they have
            its children's stamps, and so prove nothing of these.
        dropped_children: indices of operations that had a child that was set aside.
        findings: what was wrong with the data so far.
        complete: False where a parent is missing.
        spans: every span of the trace as received, duplicates removed, in a fixed order.
    """

    trace_id: bytes
    operations: tuple[Span, ...]
    parents: tuple[int, ...]
    phases: Mapping[int, Sequence[Span]]
    roots: tuple[int, ...]
    dropped_children: frozenset[int]
    findings: tuple[Finding, ...]
    complete: bool
    spans: tuple[Span, ...]
    assumptions: Assumptions = field(default_factory=Assumptions)
    stand_ins: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class AlignedTrace:
    """A trace with every operation placed in its own clock domain.

    Attributes:
        starts_ns: per operation, its start on its domain's clock (monotonic where known).
        phase_starts_ns: the same for the phase spans of each operation that has some.
        domains: per operation, the name of its clock domain.
        resolutions_ns: per domain, the granularity of its stamps.
        clocks: what is known of the offsets between domains.
        findings: what the clocks show to be wrong.
        facts: what was read of operations on the way (`facts.Facts`), by their index. Whoever
            goes on with it may change it, and so takes it out; what is not there is read anew.
    """

    trace: Trace
    starts_ns: Sequence[int]
    phase_starts_ns: Mapping[int, Sequence[int]]
    domains: Sequence[str]
    resolutions_ns: Mapping[str, int]
    clocks: Clocks = NO_CLOCKS
    findings: tuple[Finding, ...] = ()
    facts: Mapping[int, object] = field(default_factory=dict, repr=False, compare=False)
