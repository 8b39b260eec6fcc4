"""Certificates and intervals worked out again, from the spans alone and the slow way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from llmlat_processor.model import CLIENT, AlignedTrace, Clocks, Finding, Interval, Message, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind
from tests.properties.clock_world import World

Limits = dict[tuple[str, str], int]

ASKED_BY: Final = frozenset((Phase.SEND.value, Phase.UPSTREAM.value))
LAST_OUTPUTS: Final = frozenset((Phase.DECODE.value, Phase.DETOKENIZE.value, Phase.RELAY.value))
FIRST_OUTPUTS: Final = frozenset((Phase.PREFILL.value, Phase.UPSTREAM.value))
LAST_EVENTS: Final = frozenset(
    (Phase.STREAM.value, Phase.UPSTREAM_STREAM.value, Phase.FINALIZE.value)
)


# ── Intervals ────────────────────────────────────────────────────────────────────────────────────


def shortest(domains: Sequence[str], messages: Iterable[Message]) -> Limits | None:
    """The least limit of every ordered pair (Floyd and Warshall); None if they contradict."""
    limits: Limits = {(domain, domain): 0 for domain in domains}
    for message in messages:
        pair = (message.sender, message.receiver)
        limits[pair] = min(limits.get(pair, message.limit_ns), message.limit_ns)
    for middle in domains:
        for first in domains:
            if (first, middle) not in limits:
                continue
            for last in domains:
                if (middle, last) in limits:
                    through = limits[first, middle] + limits[middle, last]
                    limits[first, last] = min(limits.get((first, last), through), through)
    return limits if all(limits[domain, domain] >= 0 for domain in domains) else None


def interval_of(limits: Limits, one: str, other: str) -> Interval:
    """What clock of the other - clock of the one can be."""
    back = limits.get((other, one))
    return Interval(None if back is None else -back, limits.get((one, other)))


def contains(outer: Interval, inner: Interval) -> bool:
    """Whether one interval lies in another."""
    low = outer.low_ns is None or (inner.low_ns is not None and outer.low_ns <= inner.low_ns)
    high = outer.high_ns is None or (inner.high_ns is not None and inner.high_ns <= outer.high_ns)
    return low and high


def holds(interval: Interval, value_ns: int, slack_ns: int = 0) -> bool:
    """Whether a value lies in an interval, or as near as `slack_ns` to it."""
    low = interval.low_ns is None or interval.low_ns - slack_ns <= value_ns
    return low and (interval.high_ns is None or value_ns <= interval.high_ns + slack_ns)


# ── Certificates ─────────────────────────────────────────────────────────────────────────────────


class Edge(NamedTuple):
    """An instant of a span on its domain's clock, and which of its instants it is."""

    at_ns: int
    name: str


class Witnesses:
    """The spans of a world, placed on their clocks again without the processor's help."""

    def __init__(self, world: World, spans: Sequence[Span], domains: Mapping[bytes, str]) -> None:
        self._operation_of: dict[bytes, bytes] = {}
        self._edges: dict[bytes, list[Edge]] = {}
        self._above: dict[bytes, bytes] = {}
        self._domains = domains
        self._linked = {
            (other.span_id, each.span_id) for each in world.operations for other, _ in each.links
        }
        self._awaited = {
            (bytes.fromhex(said), each.span_id)
            for each in world.operations
            for _, _, told in each.events
            for said in _ids(told)
        }
        anchors = _anchors(spans)
        for span in spans:
            phase = span.attributes.get(names.LLMLAT_PHASE_NAME)
            owner = span.span_id if phase is None else span.parent_id
            self._operation_of[span.span_id] = owner
            placed = _placed(span, str(phase or ""), anchors.get(span.resource.process))
            self._edges.setdefault(owner, []).extend(placed)
            if phase is None:
                self._above[owner] = span.parent_id
            if span.kind == CLIENT:  # the request of an inference leaves with its transport's span
                self._edges.setdefault(span.parent_id, []).append(placed[0])

    def faults(self, message: Message) -> list[str]:
        """What is not true of one message of a proof."""
        left = self._operation_of.get(message.left)
        arrived = self._operation_of.get(message.arrived)
        if left is None or arrived is None:
            return [f"names a span that does not exist: {message}"]
        found = []
        if (self._domains[left], self._domains[arrived]) != (message.sender, message.receiver):
            found.append(f"its spans are of other domains: {message}")
        leaving = {edge.name for edge in self._edges[left] if edge.at_ns == message.left_ns}
        reaching = {edge.name for edge in self._edges[arrived] if edge.at_ns == message.arrived_ns}
        if not leaving or not reaching:
            found.append(f"its spans have no such edges: {message}")
        elif not self._is_possible(left, leaving, arrived, reaching):
            found.append(f"nothing goes from {leaving} to {reaching} of these: {message}")
        return found

    def _is_possible(
        self, left: bytes, leaving: set[str], arrived: bytes, reaching: set[str]
    ) -> bool:
        """A request to somebody below, an answer to somebody above, or what a link says."""
        if (left, arrived) in self._linked | self._awaited and "end" in leaving:
            return True
        if self._is_above(left, arrived):
            asked = {"start"} | {f"{phase} start" for phase in ASKED_BY}
            return bool(asked & leaving) and "start" in reaching
        output = {"end"} | {f"{phase} end" for phase in LAST_OUTPUTS | FIRST_OUTPUTS}
        received = {"end", "content"} | {f"{phase} end" for phase in LAST_EVENTS}
        received |= {f"{Phase.STREAM.value} start", f"{Phase.FIRST_CONTENT.value} end"}
        return self._is_above(arrived, left) and bool(output & leaving and received & reaching)

    def _is_above(self, one: bytes, other: bytes) -> bool:
        above = self._above.get(other, b"")
        while above and above != one:
            above = self._above.get(above, b"")
        return above == one


def _ids(told: Mapping[str, object]) -> list[str]:
    said = told.get(names.LLMLAT_JOIN_SPAN_IDS)
    return [str(each) for each in said] if isinstance(said, list) else []


def _anchors(spans: Sequence[Span]) -> dict[str, int]:
    """Wall minus monotonic clock of each process that tells both."""
    anchors: dict[str, int] = {}
    for span in spans:
        reading = span.attributes.get(names.LLMLAT_CLOCK_ANCHOR_MONOTONIC)
        wall = span.attributes.get(names.LLMLAT_CLOCK_ANCHOR_WALL)
        if isinstance(reading, int) and isinstance(wall, int):
            anchors.setdefault(span.resource.process, wall - reading)
    return anchors


def _placed(span: Span, phase: str, anchor_ns: int | None) -> list[Edge]:
    told = span.attributes.get(names.LLMLAT_CLOCK_MONOTONIC_START)
    start = told if isinstance(told, int) else span.start_ns - (anchor_ns or 0)
    prefix = f"{phase} " if phase else ""
    edges = [Edge(start, f"{prefix}start"), Edge(start + span.duration_ns, f"{prefix}end")]
    content = span.attributes.get(names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT)
    if isinstance(content, float):
        edges.append(Edge(start + round(content * 1e9), "content"))
    edges += [Edge(start + event.at_ns - span.start_ns, "end") for event in span.events]
    return edges


def certificate_faults(world: World, aligned: AlignedTrace, finding: Finding) -> list[str]:
    """What is wrong with the proof of a finding; nothing where it is one."""
    proof, assumptions = finding.proof, world.assumptions
    if not proof:
        return [f"no proof: {finding}"]
    found = []
    total = sum(message.limit_ns for message in proof)
    amount_ns = total
    if finding.kind is FindingKind.NEGATIVE_TRANSIT:
        # Both clocks part only while the caller waits, and the amount is that of the durations.
        waited_ns = max(message.arrived_ns for message in proof[1:]) - proof[0].left_ns
        total = sum(message.bound_ns for message in proof)
        total += max(0, waited_ns) * assumptions.drift_ppm // 10**6
        amount_ns = sum(message.arrived_ns - message.left_ns for message in proof)
    if total >= 0 or amount_ns != finding.amount_ns:
        found.append(f"proves nothing, or another amount: {finding}")
    if len(proof) not in range(*SIZES[finding.kind]):
        found.append(f"a proof of another kind: {finding}")
    if not _is_cycle(proof):
        found.append(f"no cycle: {finding}")
    placed = zip(aligned.trace.operations, aligned.domains, strict=True)
    domains = {span.span_id: domain for span, domain in placed}
    witnesses = Witnesses(world, aligned.trace.spans, domains)
    for message in proof:
        found += witnesses.faults(message)
        resolutions = aligned.resolutions_ns
        if message.epsilon_ns < resolutions[message.sender] + resolutions[message.receiver]:
            found.append(f"less tolerance than both resolutions: {message}")
        if message.tail_ns not in (0, assumptions.tail_ns):
            found.append(f"a tail of its own: {message}")
        if message.drift_ns < 0 or (message.drift_ns and not assumptions.drift_ppm):
            found.append(f"a drift of its own: {message}")
        if not {message.left, message.arrived} & set(finding.witnesses):
            found.append(f"witnesses are not those of the proof: {finding}")
    return found


def _is_cycle(proof: Sequence[Message]) -> bool:
    """Each message goes on where one has arrived, through every domain once."""
    onward = {message.sender: message.receiver for message in proof}
    if len(onward) != len(proof):
        return False
    place, seen = proof[0].sender, 0
    while seen < len(proof) and place in onward:
        place, seen = onward[place], seen + 1
        if place == proof[0].sender:
            break
    return seen == len(proof) and place == proof[0].sender


SIZES: Final[Mapping[FindingKind, tuple[int, int]]] = {
    FindingKind.NEGATIVE_TRANSIT: (2, 3),
    FindingKind.INFEASIBLE_OFFSET: (2, 3),
    FindingKind.CLOCK_STEP: (2, 3),
    FindingKind.OFFSET_CYCLE: (3, 1_000),
}
"""How many messages, and so domains, the proof of each kind has: from, below."""


def solved(clocks: Clocks) -> Limits | None:
    """The least limits of all domains of a trace by all of its messages."""
    return shortest(list(clocks.offsets), clocks.messages)
