"""The clocks of a trace in words: whose they are, how far from the root's, what contradicts what.

Everything here is of wall clocks, which people can read off a host. Where a domain is known by its
monotonic clock, that of the first span says how far apart the two are:

    wall offset = monotonic offset + (wall - monotonic here) - (wall - monotonic of the other)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.model import (
    AlignedTrace,
    ExplainedTrace,
    Finding,
    Message,
    Offset,
    Span,
)
from llmlat_processor.views.wording.intervals import interval, offset
from llmlat_processor.views.wording.plain import MICRO, duration
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind

ABOUT_CLOCKS: Final = frozenset(
    {
        FindingKind.APPARENT_NEGATIVE_NETWORK,
        FindingKind.INFEASIBLE_OFFSET,
        FindingKind.OFFSET_CYCLE,
        FindingKind.CLOCK_STEP,
    }
)
_CONTRADICTIONS: Final = ABOUT_CLOCKS - {FindingKind.APPARENT_NEGATIVE_NETWORK}

REFERENCE: Final = "the root's clock"


@dataclass(frozen=True, slots=True)
class Clock:
    """One clock domain of a trace.

    Attributes:
        services: which read it, in order of appearance.
        host: where it is; empty where nobody says.
        found: kinds of the findings that concern it, each once.
        is_reference: True for the root's.
    """

    offset: Offset
    services: Sequence[str]
    host: str
    found: Sequence[FindingKind]
    is_reference: bool

    @property
    def width_ns(self) -> int | None:
        """How far apart both ends of its offset are; None where one is not known."""
        low, high = self.offset.wall
        return None if low is None or high is None or self.is_reference else high - low

    def where(self, micro: str = MICRO) -> str:
        """Its offset from the root's clock, or why there is none."""
        if self.is_reference:
            return REFERENCE
        known = interval(self.offset.wall, micro)
        if known:
            return known
        if not self.offset.messages:
            return "not bounded: no messages"
        if not _CONTRADICTIONS.isdisjoint(self.found):
            return "not bounded: contradicts itself"
        return "not bounded: nothing leads to it"


@dataclass(frozen=True, slots=True)
class Limit:
    """What one message proves: the clock `of` is so far ahead of another, at most or at least."""

    message: Message
    of: str
    than: str
    bound: str


class ClockMap:
    """The clocks of one trace, and what the findings say of them.

    Attributes:
        clocks: the root's first; empty where all operations share one.
    """

    def __init__(self, explained: ExplainedTrace) -> None:
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

    def name(self, domain: str) -> str:
        """The service that reads a clock, and its host where other services have that name."""
        services = self._services.get(domain)
        if not services:
            return domain
        service = next(iter(services))
        shared = sum(service in each for each in self._services.values())
        return service if shared == 1 else f"{service} on {self._host(domain) or domain}"

    def _shift_ns(self, one: str, other: str) -> int:
        """What turns an offset of domains into one of their wall clocks."""
        wall = self._wall_minus_own_ns
        return wall.get(other, 0) - wall.get(one, 0)

    def limits(self, finding: Finding, micro: str = MICRO) -> Sequence[Limit]:
        """What each message of a proof says; of two domains, both times of the same offset."""
        proof = finding.proof
        is_pair = len(proof) == 2
        return [
            self._limit(message, micro, turned=is_pair and at == 1)
            for at, message in enumerate(proof)
        ]

    def _limit(self, message: Message, micro: str, *, turned: bool) -> Limit:
        sender, receiver = message.sender, message.receiver
        most_ns = message.limit_ns + self._shift_ns(sender, receiver)
        if turned:
            bound = f"at least {offset(-most_ns, micro)}"
            return Limit(message, self.name(sender), self.name(receiver), bound)
        bound = f"at most {offset(most_ns, micro)}"
        return Limit(message, self.name(receiver), self.name(sender), bound)


def against_caller(finding: Finding, micro: str = MICRO) -> str:
    """How far the clock of a finding's span is ahead of its caller's; empty where it isn't said."""
    return "" if finding.interval is None else interval(finding.interval, micro)


def granted(finding: Finding, micro: str = MICRO) -> str:
    """What a contradiction comes to, though so much was granted."""
    proof = finding.proof
    if finding.kind is FindingKind.NEGATIVE_TRANSIT:
        longer, allowed = -(finding.amount_ns or 0), finding.epsilon_ns or 0
        words = f"the callee took {duration(longer, micro)} longer than its caller waited"
        return f"{words}, and {duration(allowed, micro)} were granted"
    parts = {
        "resolution": sum(message.epsilon_ns for message in proof),
        "tail": sum(message.tail_ns for message in proof),
        "drift": sum(message.drift_ns for message in proof),
    }
    words = f"{duration(-sum(message.limit_ns for message in proof), micro)} are missing"
    kinds = ", ".join(f"{kind} {duration(size, micro)}" for kind, size in parts.items() if size)
    if not kinds:
        return f"{words}, with nothing granted"
    return f"{words}, though {duration(sum(parts.values()), micro)} were granted: {kinds}"
