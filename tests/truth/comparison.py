"""What the processor says of a scenario against what really happened, trace by trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final

from llmlat_processor.model import Interval
from llmlat_semconv.values import FindingKind, OperationName, SectionLabel
from tests.truth.scenarios import IMPOSSIBLE, Scenario, hop
from tests.truth.truth import ENGINE_PHASES, TOOL, TOOLS_HOP, Delay, Run, Truth

WARM_UP: Final = 2
"""Traces at the beginning whose delays do not count: connections are made, modules imported."""

LIMIT_NS: Final = 2_000_000
LIMIT_SHARE: Final = 0.01
HELD_NS: Final = 4_000_000
"""A stream that was really held for longer may be said to be, from 5 ms on by other stamps."""

CONTRADICTION: Final = "contradiction"
"""By how much the engine's account exceeds its caller's."""

VIOLATIONS: Final = frozenset(
    {
        FindingKind.NEGATIVE_TRANSIT,
        FindingKind.INFEASIBLE_OFFSET,
        FindingKind.OFFSET_CYCLE,
        FindingKind.CLOCK_STEP,
        FindingKind.SAME_DOMAIN_ORDER,
    }
)
"""Findings that claim that something cannot be: one that is not planted is wrong."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attribution:
    """One delay over the traces of a scenario: injected and attributed, pair by pair, in ns."""

    where: str
    injected: tuple[Delay, ...]
    attributed_ns: tuple[int, ...]

    @property
    def errors_ns(self) -> list[int]:
        """Per trace, what was attributed beyond what was injected."""
        pairs = zip(self.attributed_ns, self.injected, strict=True)
        return [attributed_ns - delay.injected_ns for attributed_ns, delay in pairs]

    @property
    def middle(self) -> int:
        """Which trace has the median of the errors (the lower one of two)."""
        errors_ns = self.errors_ns
        return errors_ns.index(median_low(errors_ns))

    @property
    def error_ns(self) -> int:
        """The median of the errors."""
        return self.errors_ns[self.middle]

    @property
    def limit_ns(self) -> float:
        """How large the error may be."""
        return max(LIMIT_NS, LIMIT_SHARE * self.injected[self.middle].injected_ns)

    @property
    def share(self) -> float:
        """The error as a share of its limit."""
        return abs(self.error_ns) / self.limit_ns


@dataclass(frozen=True, slots=True)
class OffsetCheck:
    """One host's clock against the app's in one trace: the truth, and the interval for it."""

    host: str
    wall: bool
    true_ns: int
    interval: Interval

    @property
    def is_inside(self) -> bool:
        """Whether the truth is in the interval; where that has no end, nothing is excluded."""
        low_ns, high_ns = self.interval
        return (low_ns is None or low_ns <= self.true_ns) and (
            high_ns is None or self.true_ns <= high_ns
        )

    @property
    def width_ns(self) -> int | None:
        """How wide the interval is; None where an end is not known."""
        low_ns, high_ns = self.interval
        return None if low_ns is None or high_ns is None else high_ns - low_ns

    @property
    def margin_ns(self) -> int | None:
        """From the truth to the nearer end; negative where it is outside."""
        low_ns, high_ns = self.interval
        if low_ns is None or high_ns is None:
            return None
        return min(self.true_ns - low_ns, high_ns - self.true_ns)


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings of a scenario's traces, each kind counted once a trace.

    Attributes:
        expected: how often each kind has to be there.
        found: of those, how often they were.
        unexpected: all others that nothing explains.
    """

    expected: Mapping[FindingKind, int]
    found: Mapping[FindingKind, int]
    unexpected: Mapping[FindingKind, int]

    @property
    def missing(self) -> int:
        """How many of the expected were not there."""
        return sum(count - self.found.get(kind, 0) for kind, count in self.expected.items())

    @property
    def wrong(self) -> int:
        """How many claim that something cannot be which was so."""
        return sum(count for kind, count in self.unexpected.items() if kind in VIOLATIONS)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scenario, compared.

    Attributes:
        scenario: which one.
        delays: where there were some.
        offsets: of each host, in each trace.
        findings: of all traces.
        traces: how many were compared.
        stalled: how many were left out, since the machine stood still in them.
    """

    scenario: Scenario
    delays: tuple[Attribution, ...]
    offsets: tuple[OffsetCheck, ...]
    findings: Findings
    traces: int
    stalled: int


def compared(truth: Truth, documents: Mapping[str, Document]) -> Comparison:
    """Compare a scenario.

    Args:
        truth: what really happened.
        documents: what the processor says, by trace id.

    Raises:
        KeyError: a trace is missing, or what must be in it.
    """
    told = [(run, documents[run.trace_id]) for run in truth.runs if not truth.stalled(run)]
    last = documents[truth.runs[-1].trace_id]
    judged = list(told)
    if truth.scenario.finds_at_last and truth.stalled(truth.runs[-1]):
        judged.append((truth.runs[-1], last))  # no stall is as long as what was planted
    return Comparison(
        truth.scenario,
        tuple(_attributions(truth, [each for each in told if each[0] in truth.runs[WARM_UP:]])),
        tuple(check for run, document in told for check in _offsets(truth, run, document)),
        _findings(truth, judged, last),
        len(told),
        len(truth.runs) - len(told),
    )


def _attributions(truth: Truth, told: list[tuple[Run, Document]]) -> Iterator[Attribution]:
    pairs = [(injected(truth, run), attributed(truth.scenario, document)) for run, document in told]
    for where in pairs[0][0] if pairs else ():
        yield Attribution(
            where,
            tuple(really[where] for really, _ in pairs),
            tuple(said.get(where, 0) for _, said in pairs),
        )


def injected(truth: Truth, run: Run) -> Mapping[str, Delay]:
    """What has to be told of a run: where the engine contradicts its caller, by how much."""
    delays = truth.delays(run)
    late_ns = round(truth.scenario.engine.late_ms * 1e6)
    if late_ns:
        over_wire = delays.pop(hop(*truth.scenario.model_hops[-1]))
        for phase in ENGINE_PHASES:
            del delays[phase]
        delays[CONTRADICTION] = Delay(late_ns - over_wire.injected_ns)
    return delays


def attributed(scenario: Scenario, document: Document) -> Mapping[str, int]:
    """What the path to the end attributes to each place, in ns."""
    names = {each["span_id"]: each["name"] for each in document["operations"]}
    found: Counter[str] = Counter()
    for section in document["roots"][0]["e2e"]["sections"]:
        label, service = section["label"], section["service"]
        if label == SectionLabel.TRANSIT.value:
            found[_hop(scenario, service, names[section["span_id"]])] += section["duration_ns"]
        elif label in {TOOL, *ENGINE_PHASES}:
            found[label] += section["duration_ns"]
    for finding in document["findings"]:
        if finding["kind"] == IMPOSSIBLE.value:
            found[CONTRADICTION] -= finding["amount_ns"]
    return found


def _hop(scenario: Scenario, client: str, name: str) -> str:
    if name.startswith(OperationName.EXECUTE_TOOL.value):
        return TOOLS_HOP
    return hop(client, dict(scenario.model_hops)[client])


def _offsets(truth: Truth, run: Run, document: Document) -> Iterator[OffsetCheck]:
    by_service = {
        service: domain
        for domain in document["clocks"]["domains"]
        for service in domain["services"]
    }
    for host in truth.scenario.hosts[1:]:
        for wall, key in ((False, "offset_ns"), (True, "wall_offset_ns")):
            said = by_service[host][key]
            true_ns = truth.offset_ns(host, run, wall=wall)
            yield OffsetCheck(host, wall, true_ns, Interval(said["low"], said["high"]))


def _findings(truth: Truth, judged: Iterable[tuple[Run, Document]], last: Document) -> Findings:
    scenario = truth.scenario
    expected: Counter[FindingKind] = Counter()
    found: Counter[FindingKind] = Counter()
    unexpected: Counter[FindingKind] = Counter()
    for run, document in judged:
        due = scenario.finds | (scenario.finds_at_last if document is last else frozenset())
        there = {FindingKind(finding["kind"]) for finding in document["findings"]}
        expected.update(due)
        found.update(there & due)
        may = {FindingKind.STREAM_HELD} if truth.held_ns(run) > HELD_NS else set()
        unexpected.update(there - due - scenario.may_find - may)
    return Findings(expected, found, unexpected)
