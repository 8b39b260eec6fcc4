"""Hosts whose clocks are wrong by an amount that is known, and the processes on them.

True time is counted in nanoseconds from the start of the trace; nobody in the trace can read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from llmlat_processor.model import AttributeValue, Resource
from llmlat_semconv import attributes as names
from tests.cases.case_format import EPOCH_NS

MS: Final = 1_000_000
HOUR_NS: Final = 3_600 * 10**9
MAX_DRIFT_PPB: Final = 99_000
"""Of one clock against true time. Two part by 198 ppm of it, and by no more than 200 ppm of what
either of them counts."""


@dataclass(frozen=True, slots=True)
class Host:
    """One machine.

    Attributes:
        wall_ns: how far its wall clock is ahead of true time at the start of the trace.
        monotonic_ns: what its monotonic clock reads then; None where nobody tells it.
        drift_ppb: how much faster its clocks run than true time, in billionths.
        resolution_ns: both clocks show multiples of it.
        declares: whether its resources say so.
        weak: nothing but the resource tells its clock from others.
        step: (when, by how much) its wall clock was set.
    """

    name: str
    wall_ns: int
    monotonic_ns: int | None = None
    drift_ppb: int = 0
    resolution_ns: int = 1
    declares: bool = True
    weak: bool = False
    step: tuple[int, int] | None = None

    @property
    def ahead_ns(self) -> int:
        """Reading, at the start of the trace, of the clock that its spans are placed by."""
        return EPOCH_NS + self.wall_ns if self.monotonic_ns is None else self.monotonic_ns

    def wall(self, at: int) -> int:
        """Reading of the wall clock at a true instant, since 1970."""
        stepped = self.step[1] if self.step is not None and at >= self.step[0] else 0
        return self._shown(EPOCH_NS + self.wall_ns + self._elapsed(at) + stepped)

    def monotonic(self, at: int) -> int:
        """Reading of the monotonic clock at a true instant."""
        assert self.monotonic_ns is not None
        return self._shown(self.monotonic_ns + self._elapsed(at))

    def ahead(self, by_ns: int) -> Host:
        """The same host, the clock that its spans are placed by further on by some time."""
        if self.monotonic_ns is None:
            return replace(self, wall_ns=self.wall_ns + by_ns)
        return replace(self, monotonic_ns=self.monotonic_ns + by_ns)

    def _elapsed(self, at: int) -> int:
        return at + at * self.drift_ppb // 10**9

    def _shown(self, time_ns: int) -> int:
        return time_ns - time_ns % self.resolution_ns


@dataclass(frozen=True, slots=True)
class Process:
    """A program on a host.

    Attributes:
        provider: we make its provider, so that its resource names the clock domain.
        replica: of a program on another host with the very same resource, where it has no host.
        anchor_error_ns: how wrong its pair of readings is.
        uncertainty_ns: how wrong it says that the pair can be.
    """

    host: str
    number: int
    provider: bool = False
    replica: bool = False
    anchor_error_ns: int = 0
    uncertainty_ns: int = 0

    @property
    def name(self) -> str:
        """Told apart from all others."""
        return f"{self.host}/{self.number}"


def monotonic_domain(host: Host) -> str:
    """What spans of ours call the clock of a host."""
    return f"boot-{host.name}"


def domain_of(process: Process, host: Host) -> str:
    """The clock domain of what a process emits, as section 1 has it."""
    if host.monotonic_ns is not None:
        return monotonic_domain(host)
    return _hash_of(process) if host.weak else f"{names.HOST_ID}={host.name}"


def _hash_of(process: Process) -> str:
    return "hash-of-replicas" if process.replica else f"hash-{process.name}"


def resource_of(process: Process, host: Host) -> Resource:
    """What a process says of itself."""
    name = _hash_of(process) if host.weak else process.name
    attributes: dict[str, AttributeValue] = {names.SERVICE_NAME: name}
    domain = name
    if not host.weak:
        attributes[names.HOST_ID] = host.name
        attributes[names.SERVICE_INSTANCE_ID] = name
        domain = f"{names.HOST_ID}={host.name}"
    if process.provider and host.monotonic_ns is not None:
        domain = attributes[names.LLMLAT_CLOCK_DOMAIN_ID] = monotonic_domain(host)
    if host.declares and host.resolution_ns > 1:
        attributes[names.LLMLAT_CLOCK_DOMAIN_RESOLUTION] = host.resolution_ns
    return Resource(attributes, service=name, process=name, domain=domain, weak=host.weak)


def any_host(rng: Random, name: str, drift_ppb: int) -> Host:
    """A host whose clocks are wrong like those of life: not at all, a little, or by an hour."""
    wall_ns = rng.choice((0, MS, -MS, rng.randint(-MS, MS), rng.randint(-HOUR_NS, HOUR_NS)))
    style = rng.choice(("monotonic", "monotonic", "wall", "wall", "weak"))
    monotonic_ns = rng.randint(10**13, 10**15) if style == "monotonic" else None
    return Host(
        name,
        wall_ns,
        monotonic_ns,
        drift_ppb,
        # A monotonic clock in milliseconds is told by nobody.
        rng.choice((1, 1, 1_000) if style == "monotonic" else (1, 1, 1_000, MS)),
        weak=style == "weak",
    )


def any_hosts(rng: Random) -> list[Host]:
    """Two to eight, in a trace where all clocks drift or none does."""
    limit = rng.choice((0, 0, 1_000, MAX_DRIFT_PPB))
    number = rng.choice((2, 3, 3, 4, 5, 6, 8))
    drifts = [rng.choice((-limit, limit, rng.randint(-limit, limit))) for _ in range(number)]
    return [any_host(rng, f"h{at}", drift) for at, drift in enumerate(drifts)]


def any_process(rng: Random, host: Host, number: int) -> Process:
    """One more process of a host."""
    uncertainty = rng.choice((0, 200, 20_000))
    error = rng.randint(-uncertainty, uncertainty)
    replica = host.weak and host.resolution_ns == 1 and rng.random() < 0.5
    return Process(host.name, number, rng.random() < 0.5, replica, error, uncertainty)
