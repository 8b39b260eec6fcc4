"""Worlds in which something impossible was planted, and what has to be found of it.

a callee that took longer than its caller waited              negative_transit
calls between two hosts that need two offsets, in turns       infeasible_offset
three to five hosts, each two fine, all together impossible   offset_cycle
a wall clock that was set between two groups of calls         clock_step
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from llmlat_processor.model import CLIENT, SERVER, AlignedTrace, ExplainedTrace, Finding
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.properties.clock_checks import FLOOR_NS, Faults, hosts_of, violations
from tests.properties.clock_growth import SECOND_NS, Growth
from tests.properties.clock_hosts import MS, Process, any_host
from tests.properties.clock_proofs import certificate_faults, holds, solved
from tests.properties.clock_shapes import RPC, SHAPES, grown_world
from tests.properties.clock_world import Operation, World


@dataclass(frozen=True, slots=True)
class Plant:
    """What was planted.

    Attributes:
        kind: what has to be found.
        world: the rest of it is possible.
        operations: those that are to blame.
        hosts: whose clocks the proof is about.
    """

    kind: FindingKind
    world: World
    operations: frozenset[bytes]
    hosts: frozenset[str]


def planted_world(seed: int, kind: FindingKind) -> Plant:
    """A grown world, and after all that happens in it something impossible."""
    growth = Growth(seed)
    length = growth.length()
    growth.fill(growth.root(length), 0, length, SHAPES)
    growth.link_some()
    bed = _Bed(growth)
    _PLANTS[kind](bed)
    growth.world.root.end = max(each.end for each in growth.world.operations)
    blamed = frozenset(each.span_id for each in bed.operations)
    return Plant(kind, growth.finished(), blamed, frozenset(bed.names))


class _Bed:
    """Where something is planted: under the root, on hosts that have nothing else to do."""

    def __init__(self, growth: Growth) -> None:
        self.growth = growth
        self.rng = growth.rng
        self.operations: list[Operation] = []
        self.names: list[str] = []
        self.now = max(each.end for each in growth.world.operations)
        # Beyond every tolerance: of resolutions, tails and drift, each of them twice.
        self.margin = 50 * MS + (self.now + 10 * SECOND_NS) // 500

    def amount(self) -> int:
        """More than all tolerances, by little or by much, in either direction."""
        more = self.rng.choice((0, self.rng.randint(0, MS), self.rng.randint(0, 600 * SECOND_NS)))
        return self.rng.choice((-1, 1)) * (self.margin + more)

    def new_place(self, *, wall_only: bool = False) -> Process:
        """A process on a new host, the clock of which drifts as others do."""
        world = self.growth.world
        drift_ppb = self.rng.choice([host.drift_ppb for host in world.hosts.values()])
        host = replace(any_host(self.rng, f"p{len(self.names)}", drift_ppb), weak=False)
        if wall_only:
            host = replace(host, monotonic_ns=None)
        if world.assumptions.resolution_ns is not None:  # which is true of the other hosts
            host = replace(host, monotonic_ns=None, resolution_ns=1)
        self.names.append(host.name)
        world.hosts[host.name] = host
        return self.growth.new_process(host)

    def long_call(self, place: Process) -> Operation:
        """A call of ten seconds to a new host, from which others are made; nothing is wrong yet."""
        self.call(self.growth.world.root, place)
        call, server = self.operations
        self.operations = []
        self.now = server.start
        call.end, server.end = self.now + 11 * SECOND_NS, self.now + 10 * SECOND_NS
        return server

    def call(self, caller: Operation, place: Process, lie_ns: int = 0, longer: int = 0) -> None:
        """A unary call that takes 20 ms, its callee's stamps all wrong by so much."""
        growth, start = self.growth, self.now
        legs = growth.cuts(start, start + 20 * MS, 2)
        call = growth.add(caller, caller.process, CLIENT, start, start + 20 * MS, RPC)
        server = growth.add(call, place, SERVER, legs[0], legs[1] + longer)
        server.lie_ns = lie_ns
        self.operations += [call, server]
        self.now = start + 30 * MS


def _too_long(bed: _Bed) -> None:
    root = bed.growth.world.root
    bed.call(root, bed.new_place(), longer=20 * MS + abs(bed.amount()))


def _two_offsets(bed: _Bed) -> None:
    root, place = bed.growth.world.root, bed.new_place()
    lie_ns = bed.rng.choice((-1, 1)) * bed.margin
    for lies in (True, False, True, False):
        bed.call(root, place, lie_ns if lies else 0)
        bed.now += 2 * bed.margin  # in turns by either clock, so that neither can have been set


def _circle(bed: _Bed) -> None:
    places = [bed.new_place() for _ in range(bed.rng.choice((3, 3, 4, 5)))]
    first = bed.long_call(places[0])
    bed.call(first, places[-1], 5 * bed.amount())  # each hop has slack of its own
    at, until = first, first.end
    for place in places[1:]:
        bed.call(at, place)
        call, at = bed.operations[-2:]
        call.end, at.end, bed.now = until - 10 * MS, until - 20 * MS, at.start
        until -= 20 * MS


def _step(bed: _Bed) -> None:
    root, place = bed.growth.world.root, bed.new_place(wall_only=True)
    for _ in range(bed.rng.choice((2, 3))):
        bed.call(root, place)
    bed.now += MS
    stepped = replace(bed.growth.world.hosts[place.host], step=(bed.now, bed.amount()))
    bed.growth.world.hosts[place.host] = stepped
    bed.now += MS
    for _ in range(bed.rng.choice((2, 3))):
        bed.call(root, place)


_PLANTS: Final[Mapping[FindingKind, Callable[[_Bed], None]]] = {
    FindingKind.NEGATIVE_TRANSIT: _too_long,
    FindingKind.INFEASIBLE_OFFSET: _two_offsets,
    FindingKind.OFFSET_CYCLE: _circle,
    FindingKind.CLOCK_STEP: _step,
}
KINDS: Final = tuple(_PLANTS)


# ── What has to be found ─────────────────────────────────────────────────────────────────────────


def plant_faults(plant: Plant, found: ExplainedTrace) -> Faults:
    """The planted is found and proved, and no interval is wrong for it."""
    named = [each for each in found.findings if each.kind is plant.kind]
    named = [each for each in named if plant.operations.issuperset(each.witnesses)]
    faults = [] if named else [f"{plant.kind.value} planted and not found"]
    for each in named:
        faults += _proof_faults(plant, found.aligned, each)
    return faults + _interval_faults(plant, found.aligned)


def blame_faults(plant: Plant, found: ExplainedTrace) -> Faults:
    """Nothing else is said to be impossible."""
    return [
        f"blamed for nothing: {each}"
        for each in violations(found.findings)
        if each.kind is not plant.kind or not plant.operations.issuperset(each.witnesses)
    ]


def explained(plant: Plant) -> ExplainedTrace:
    """All that is found in a planted world."""
    return process(plant.world.spans(), plant.world.assumptions)


def _proof_faults(plant: Plant, aligned: AlignedTrace, finding: Finding) -> Faults:
    if plant.kind is FindingKind.NEGATIVE_TRANSIT:
        return _duration_faults(plant.world, finding)
    faults = certificate_faults(plant.world, aligned, finding)
    hosts = hosts_of(plant.world, aligned)
    proved = {hosts[message.sender].name for message in finding.proof}
    expected = set(plant.hosts)
    if plant.kind is not FindingKind.OFFSET_CYCLE:
        expected.add(plant.world.host_of(plant.world.root).name)
    if proved != expected:
        faults.append(f"proof is about {sorted(proved)}, not {sorted(expected)}")
    return faults


def _duration_faults(world: World, finding: Finding) -> Faults:
    """What a call waited less what its callee took, each by its own clock."""
    by_id = {each.span_id: each for each in world.operations}
    callee = by_id[finding.of]
    assert callee.parent is not None
    took = world.reading(callee, callee.end) - world.reading(callee, callee.start)
    waited = world.reading(callee.parent, callee.parent.end)
    waited -= world.reading(callee.parent, callee.parent.start)
    right = finding.amount_ns == waited - took < -(finding.epsilon_ns or 0)
    return [] if right else [f"not {waited} - {took}: {finding}"]


def _interval_faults(plant: Plant, aligned: AlignedTrace) -> Faults:
    """What was planted is left out: no interval excludes the truth for it.

    A step bends the time that passed by as much as it sets the clock, and so drift by a bit of it.
    """
    hosts = hosts_of(plant.world, aligned)
    reference = hosts[aligned.clocks.reference]
    steps = [abs(host.step[1]) for host in hosts.values() if host.step is not None]
    slack_ns = FLOOR_NS + max(steps, default=0) * plant.world.assumptions.drift_ppm // 10**6
    truths = {domain: host.ahead_ns - reference.ahead_ns for domain, host in hosts.items()}
    return [
        f"{truths[domain]} of {domain} outside {offset.interval}"
        for domain, offset in aligned.clocks.offsets.items()
        if not holds(offset.interval, truths[domain], slack_ns)
    ]


def lying_world(seed: int) -> World:
    """A world in which some operations have stamps that no clock ever showed."""
    world = grown_world(seed)
    rng = Random(f"lies of {seed}")
    by_ns = (1_000, 5 * MS, SECOND_NS)
    for each in rng.sample(world.operations, rng.randint(0, min(4, len(world.operations)))):
        each.lie_ns = rng.randint(-1, 1) * rng.randint(0, rng.choice(by_ns))
    return world


def claim_faults(world: World, found: AlignedTrace) -> Faults:
    """Offsets are called impossible where they are, and only there; each claim is proved."""
    claimed = [finding for finding in found.findings if finding.kind in KINDS]
    faults = []
    impossible = [each for each in claimed if each.kind is not FindingKind.NEGATIVE_TRANSIT]
    if (solved(found.clocks) is None) != bool(impossible):
        faults.append(f"the messages say otherwise than {impossible}")
    for finding in claimed:
        faults += certificate_faults(world, found, finding)
    return faults
