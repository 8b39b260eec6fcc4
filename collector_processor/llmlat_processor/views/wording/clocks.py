"""The clocks of a trace in words: whose they are, how far from the root's, what contradicts what.

Everything here is of wall clocks, which people can read off a host. Where a domain is known by its
monotonic clock, that of the first span says how far apart the two are:

    wall offset = monotonic offset + (wall - monotonic here) - (wall - monotonic of the other)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.model import (
    AlignedTrace,
    ExplainedTrace,
    Finding,
    Interval,
    Message,
    Offset,
    Span,
)
from llmlat_processor.views.wording.intervals import ahead, interval, power_below
from llmlat_processor.views.wording.plain import MICRO, PLAIN_WORDS, duration
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind

ABOUT_CLOCKS: Final = frozenset(
    {
        FindingKind.APPARENT_NEGATIVE_NETWORK,
        FindingKind.NEGATIVE_TRANSIT,
        FindingKind.INFEASIBLE_OFFSET,
        FindingKind.OFFSET_CYCLE,
        FindingKind.CLOCK_STEP,
    }
)
_CONTRADICTIONS: Final = ABOUT_CLOCKS - {FindingKind.APPARENT_NEGATIVE_NETWORK}

REFERENCE: Final = "the root's clock"

FINEST: Final = 50
"""What a limit is rounded by is at most one of so many parts of what a contradiction lacks."""


@dataclass(frozen=True, slots=True)
class Clock:
    """One clock domain of a trace.

    Attributes:
        services: which read it, in order of appearance.
        host: where it is; empty where nobody says.
        within: name of its first operation where others are called alike and no host is known.
        found: kinds of the findings that concern it, each once.
        is_reference: True for the root's.
    """

    offset: Offset
    services: Sequence[str]
    host: str
    within: str
    found: Sequence[FindingKind]
    is_reference: bool

    @property
    def is_contradicted(self) -> bool:
        """A finding says that what is known of it cannot be."""
        return not _CONTRADICTIONS.isdisjoint(self.found)

    @property
    def width_ns(self) -> int | None:
        """How far apart both ends of its offset are; None where one is not known."""
        low, high = self.offset.wall
        return None if low is None or high is None or self.is_reference else high - low

    @property
    def at_least_ns(self) -> int:
        """How far it is from the root's clock at the least."""
        low, high = self.offset.wall
        return max(low or 0, -(high or 0), 0) if not self.is_reference else 0

    def where(self, micro: str = MICRO) -> str:
        """Its offset from the root's clock, or why there is none."""
        if self.is_reference:
            return REFERENCE
        known = interval(self.offset.wall, micro)
        if known:
            return known
        if self.is_contradicted:
            return "not bounded: contradictory"
        if not self.offset.messages:
            return "not bounded: no messages"
        return "not bounded: nothing leads to it"


@dataclass(frozen=True, slots=True)
class Limit:
    """What one message proves: `of` is `at least 5 s behind` `than`."""

    message: Message
    of: str
    than: str
    bound: str


class ClockMap:
    """The clocks of one trace, and what the findings say of them.

    Attributes:
        clocks: the root's first; empty where all operations share one.
    """

    def __init__(self, explained: ExplainedTrace, short: Callable[[str], str] = str) -> None:
        """Read a trace; `short` makes a name fit for where it is written."""
        self._short = short
        self._aligned = explained.aligned
        self._domains: dict[bytes, str] = {}
        self._first: dict[str, Span] = {}
        self._services: dict[str, dict[str, None]] = {}
        self._wall_minus_own_ns: dict[str, int] = {}
        self._read(explained.aligned)
        self.clocks: Sequence[Clock] = ()
        if len(explained.aligned.clocks.offsets) > 1:
            self.clocks = self._clocks(explained.findings)

    def _read(self, aligned: AlignedTrace) -> None:
        rows = zip(aligned.trace.operations, aligned.domains, aligned.starts_ns, strict=True)
        for span, domain, start_ns in rows:
            self._domains.setdefault(span.span_id, domain)
            if self._first.setdefault(domain, span) is span:
                self._wall_minus_own_ns[domain] = span.start_ns - start_ns
            self._services.setdefault(domain, {})[span.resource.service] = None

    def _clocks(self, findings: Sequence[Finding]) -> Sequence[Clock]:
        found: dict[str, dict[FindingKind, None]] = {}
        for finding in findings:
            for domain in self._concerned(finding):
                found.setdefault(domain, {})[finding.kind] = None
        known = self._aligned.clocks
        return [
            Clock(
                one,
                (*self._services.get(domain, {}),),
                self._host(domain),
                self._within(domain),
                (*found.get(domain, {}),),
                domain == known.reference,
            )
            for domain, one in known.offsets.items()
        ]

    def _concerned(self, finding: Finding) -> set[str]:
        """The domains that a finding says something of."""
        if finding.proof:
            return {message.sender for message in finding.proof}
        own = self._domains.get(finding.of)
        return {own} if own is not None and finding.kind in ABOUT_CLOCKS else set()

    def _host(self, domain: str) -> str:
        first = self._first.get(domain)
        said = {} if first is None else first.resource.attributes
        for key in (names.HOST_NAME, names.HOST_ID):
            if isinstance(host := said.get(key), str) and host:
                return host
        return ""

    def _within(self, domain: str) -> str:
        return "" if self._host(domain) or not self._is_shared(domain) else self._first[domain].name

    def _is_shared(self, domain: str) -> bool:
        """Another clock is read by a service of the same name."""
        service = next(iter(self._services.get(domain, {})), None)
        return sum(service in each for each in self._services.values()) > 1

    def domain(self, span_id: bytes) -> str:
        """The clock that a span is stamped by; empty for a span that has none."""
        return self._domains.get(span_id, "")

    def name(self, domain: str) -> str:
        """The service that reads a clock, and its host where other services have that name."""
        services = self._services.get(domain)
        if not services:
            return self._short(domain)
        service = self._short(next(iter(services)))
        if not self._is_shared(domain):
            return service
        host = self._host(domain)
        where = f"on {self._short(host)}" if host else f"in {self._short(self._within(domain))}"
        return f"{service} {where}"

    def _shift_ns(self, one: str, other: str) -> int:
        """What turns an offset of domains into one of their wall clocks."""
        wall = self._wall_minus_own_ns
        return wall.get(other, 0) - wall.get(one, 0)

    def limits(self, finding: Finding, micro: str = MICRO) -> Sequence[Limit]:
        """What each message of a proof says, rounded so that the contradiction stays.

        Of two domains both are of the same offset: of that which is not the root's.
        """
        proof = finding.proof
        lacking_ns = max(0, -sum(message.limit_ns for message in proof))
        step = power_below(lacking_ns // (FINEST * max(len(proof), 1)))
        of = self._told_of(proof)
        return [self._limit(message, of, micro, step) for message in proof]

    def _told_of(self, proof: Sequence[Message]) -> str:
        """Whose offset both messages of two domains bound; empty of more domains."""
        if len(proof) != 2:
            return ""
        sender, receiver = proof[0][:2]
        return sender if receiver == self._aligned.clocks.reference else receiver

    def _limit(self, message: Message, of: str, micro: str, step: int) -> Limit:
        sender, receiver = message.sender, message.receiver
        most_ns = message.limit_ns + self._shift_ns(sender, receiver)
        if sender == of:
            bound = ahead(Interval(-most_ns, None), micro, step)
            return Limit(message, self.name(sender), self.name(receiver), bound)
        bound = ahead(Interval(None, most_ns), micro, step)
        return Limit(message, self.name(receiver), self.name(sender), bound)

    def together(self, finding: Finding, micro: str = MICRO) -> str:
        """What the messages of a proof come to, though so much was granted."""
        proof = finding.proof
        if finding.kind is FindingKind.NEGATIVE_TRANSIT:
            longer, allowed = -(finding.amount_ns or 0), finding.epsilon_ns or 0
            words = f"the callee took {duration(longer, micro)} longer than its caller waited"
            return f"{words}, and {duration(allowed, micro)} were granted"
        lacking = duration(-sum(message.limit_ns for message in proof), micro)
        if finding.kind is FindingKind.CLOCK_STEP:
            words = f"between them {self.name(self._told_of(proof))} {self._moved(proof)} by "
            words += f"at least {lacking}"
        else:
            number = "both" if len(proof) == 2 else f"all {len(proof)}"
            words = f"{number} cannot be true: {lacking} are missing"
        parts = {
            "resolution of stamps": sum(message.epsilon_ns for message in proof),
            "servers' tails": sum(message.tail_ns for message in proof),
            "drift": sum(message.drift_ns for message in proof),
        }
        kinds = ", ".join(f"{kind} {duration(size, micro)}" for kind, size in parts.items() if size)
        if not kinds:
            return f"{words}, with nothing granted"
        return f"{words}, though {duration(sum(parts.values()), micro)} were granted: {kinds}"

    def _moved(self, proof: Sequence[Message]) -> str:
        """Which way a clock was stepped, where both clocks tell the same order of the messages."""
        of = self._told_of(proof)
        least = next(message for message in proof if message.sender == of)
        most = next(message for message in proof if message.receiver == of)
        later = {
            of: least.left_ns > most.arrived_ns,
            least.receiver: least.arrived_ns > most.left_ns,
        }
        steady = [later[domain] for domain in later if self._wall_minus_own_ns.get(domain)]
        told = set(steady or later.values())
        return "moved" if len(told) > 1 else "moved ahead" if True in told else "moved back"


def against_caller(finding: Finding, micro: str = MICRO) -> str:
    """`4.98 s to 5.01 s behind`: the callee's clock and its caller's; empty where it isn't said."""
    return "" if finding.interval is None else ahead(finding.interval, micro)


def meaning(finding: Finding, micro: str = MICRO) -> str:
    """A finding in plain words, and how far what clocks."""
    words, bound = PLAIN_WORDS[finding.kind], against_caller(finding, micro)
    if bound:
        return f"{words}: the callee's is {bound} the caller's"
    if finding.kind is FindingKind.CLOCK_STEP and finding.amount_ns and not finding.proof:
        way = "ahead" if finding.amount_ns > 0 else "back"
        by = duration(abs(finding.amount_ns), micro)
        return f"{words}: against its process's steady clock it was set {way} by {by}"
    return words


def size(finding: Finding, micro: str = MICRO) -> str:
    """How much of it there is; by how much clocks contradict each other has no sign."""
    amount_ns = finding.amount_ns
    if amount_ns is None:
        return ""
    has_no_sign = finding.kind in _CONTRADICTIONS - {FindingKind.NEGATIVE_TRANSIT}
    return duration(abs(amount_ns) if has_no_sign else amount_ns, micro)


def by_weight(findings: Iterable[Finding]) -> Sequence[tuple[int, Finding]]:
    """What an offset of clocks explains after all that nothing does, and of that the worst first.

    Returns:
        Each with its number among the findings.
    """

    def weight(numbered: tuple[int, Finding]) -> tuple[bool, int]:
        _, finding = numbered
        is_explained = finding.kind is FindingKind.APPARENT_NEGATIVE_NETWORK
        return is_explained, -(finding.amount_ns or 0) if is_explained else 0

    return sorted(enumerate(findings), key=weight)
