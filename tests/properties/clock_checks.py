"""What must be true of the clocks of any world: each check lists what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from llmlat_processor.model import (
    CLIENT,
    SERVER,
    AlignedTrace,
    Assumptions,
    Clocks,
    Finding,
    Interval,
    Path,
    RootPaths,
    Span,
)
from llmlat_processor.offsets import between
from llmlat_processor.pipeline import process
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from llmlat_semconv.values import FindingKind
from tests.properties.clock_hosts import MS, Host
from tests.properties.clock_proofs import (
    Witnesses,
    contains,
    holds,
    interval_of,
    solved,
)
from tests.properties.clock_world import World

VIOLATIONS: Final = frozenset(
    (
        FindingKind.NEGATIVE_TRANSIT,
        FindingKind.INFEASIBLE_OFFSET,
        FindingKind.OFFSET_CYCLE,
        FindingKind.CLOCK_STEP,
        FindingKind.SAME_DOMAIN_ORDER,
    )
)
FLOOR_NS: Final = 1
"""Readings of clocks that drift are rounded down."""

Faults = list[str]


def aligned(spans: Iterable[Span], assumptions: Assumptions) -> AlignedTrace:
    """A trace with its clocks."""
    return align_clocks(assemble(spans, assumptions))


def violations(findings: Iterable[Finding]) -> list[Finding]:
    """Those that say that something cannot be."""
    return [finding for finding in findings if finding.kind in VIOLATIONS]


# ── The truth ────────────────────────────────────────────────────────────────────────────────────


def domains_of(world: World, found: AlignedTrace) -> dict[bytes, str]:
    """The clock domain that each operation was given."""
    placed = zip(found.trace.operations, found.domains, strict=True)
    return {span.span_id: domain for span, domain in placed}


def hosts_of(world: World, found: AlignedTrace) -> dict[str, Host]:
    """Whose clock each domain is: of a sound one, that of one host."""
    domains = domains_of(world, found)
    return {domains[each.span_id]: world.host_of(each) for each in world.operations}


def domain_faults(world: World, found: AlignedTrace) -> Faults:
    """Domains are those of section 1; a weak one may be split, but never spans two clocks."""
    domains, faults = domains_of(world, found), []
    hosts = hosts_of(world, found)
    for each in world.operations:
        domain, host = domains[each.span_id], world.host_of(each)
        if hosts[domain] is not host:
            faults.append(f"one domain of {hosts[domain].name} and {host.name}: {domain}")
        if not host.weak and domain != world.domain(each):
            faults.append(f"{domain}, not {world.domain(each)}")
    if set(found.clocks.offsets) != set(hosts):
        faults.append(f"offsets of {sorted(found.clocks.offsets)}, not {sorted(hosts)}")
    if found.clocks.reference != domains[world.root.span_id]:
        faults.append(f"reference is {found.clocks.reference}")
    return faults


def truth_faults(world: World, found: AlignedTrace) -> Faults:
    """Every message, every interval to the root and between two domains allows the truth."""
    clocks, hosts = found.clocks, hosts_of(world, found)
    reference, faults = hosts[clocks.reference], []
    truths = {domain: host.ahead_ns - reference.ahead_ns for domain, host in hosts.items()}
    for message in clocks.messages:
        theta = truths[message.receiver] - truths[message.sender]
        if theta > message.limit_ns + FLOOR_NS:
            faults.append(f"false by {theta - message.limit_ns} ns: {message}")
    for domain, offset in clocks.offsets.items():
        if not holds(offset.interval, truths[domain], FLOOR_NS):
            faults.append(f"{truths[domain]} of {domain} outside {offset.interval}")
        wall_ns = hosts[domain].wall_ns - reference.wall_ns
        if not holds(offset.wall, wall_ns, FLOOR_NS + _anchoring(world)):
            faults.append(f"wall {wall_ns} of {domain} outside {offset.wall}")
    for one, other in _pairs(clocks, world.seed):
        theta = truths[other] - truths[one]
        if not holds(between(clocks, one, other), theta, FLOOR_NS):
            faults.append(f"{theta} outside {between(clocks, one, other)}: {one} to {other}")
    return faults


def _anchoring(world: World) -> int:
    """Twice by how much any anchor can be wrong."""
    return 2 * max((each.process.uncertainty_ns for each in world.operations), default=0)


def _pairs(clocks: Clocks, seed: int) -> list[tuple[str, str]]:
    domains = list(clocks.offsets)
    rng = Random(seed)
    return [(rng.choice(domains), rng.choice(domains)) for _ in range(min(6, len(domains) ** 2))]


def violation_faults(world: World, findings: Iterable[Finding]) -> Faults:
    """A feasible world violates nothing."""
    return [f"false violation: {finding}" for finding in violations(findings)]


def pipeline_faults(world: World) -> Faults:
    """The same of all that is found on the way to the end."""
    explained = process(world.spans(), world.assumptions)
    return violation_faults(world, explained.findings)


# ── Tightness ────────────────────────────────────────────────────────────────────────────────────


def tightness_faults(world: World, found: AlignedTrace) -> Faults:
    """The intervals are those that all messages prove together, and no wider."""
    clocks = found.clocks
    limits = solved(clocks)
    if limits is None:
        return ["the messages contradict each other"]
    faults = [
        f"{offset.interval} of {domain}, not {best}"
        for domain, offset in clocks.offsets.items()
        if (best := interval_of(limits, clocks.reference, domain)) != offset.interval
    ]
    for one, other in _pairs(clocks, world.seed):
        if (said := between(clocks, one, other)) != interval_of(limits, one, other):
            faults.append(f"between {one} and {other}: {said}, not as by all messages")
    return faults


def text_faults(world: World, found: AlignedTrace) -> Faults:
    """Where no clock drifts, the intervals are as tight as the text of the rules makes them."""
    if world.assumptions.drift_ppm:
        return []
    limits: dict[tuple[str, str], int] = {}
    domains = domains_of(world, found)
    granted = {(m.sender, m.receiver): m.epsilon_ns for m in found.clocks.messages}
    for bound in world.bounds:
        pair = (domains[bound.sender.span_id], domains[bound.receiver.span_id])
        if pair[0] == pair[1]:
            continue
        epsilon = granted.get(pair, 0)
        arrived = world.reading(bound.receiver, bound.arrived)
        tail_ns = world.assumptions.tail_ns if bound.is_answer else 0
        limit = arrived - world.reading(bound.sender, bound.left) + epsilon + tail_ns
        limits[pair] = min(limits.get(pair, limit), limit)
    faults = []
    told = {(m.sender, m.receiver): m.limit_ns for m in sorted(found.clocks.messages, key=_wider)}
    for pair, limit in limits.items():
        if told.get(pair, limit + 1) > limit:
            faults.append(f"wider than the text for {pair}: {told.get(pair)}, not {limit}")
    return faults


def _wider(message: object) -> int:
    return -int(getattr(message, "limit_ns", 0))


# ── What changes nothing, or little ──────────────────────────────────────────────────────────────


def order_faults(world: World, found: AlignedTrace) -> Faults:
    """Order and repetition of the spans change nothing at all."""
    rng = Random(world.seed)
    spans = world.spans()
    mixed = [*spans, *rng.sample(world.spans(), len(spans) // 3)]
    rng.shuffle(mixed)
    again = aligned(mixed, world.assumptions)
    if (again.clocks, again.findings) != (found.clocks, found.findings):
        return ["another order of the spans gives other clocks"]
    return []


def shift_faults(world: World, found: AlignedTrace) -> Faults:
    """A constant added to all stamps of one domain changes its offset by just that."""
    rng = Random(world.seed)
    hosts = hosts_of(world, found)
    domain = rng.choice(sorted(found.clocks.offsets))
    name = hosts[domain].name
    by_ns = rng.choice((-1, 1)) * MS * rng.choice((1, 1_000, rng.randint(1, 10**6)))
    again = aligned(world.spans({name: by_ns}), world.assumptions)
    moved = {each for each, host in hosts.items() if host.name == name}
    reference = found.clocks.reference
    faults = []
    for each, offset in found.clocks.offsets.items():
        if _is_guessed(world):
            break
        by = (each in moved) - (reference in moved)
        if again.clocks.offsets[each].interval != _moved(offset.interval, by * by_ns):
            faults.append(f"{each}: {offset.interval} and {again.clocks.offsets[each].interval}")
        if again.clocks.offsets[each].messages != offset.messages:
            faults.append(f"{each}: another number of messages")
    if _said(again.findings) != _said(found.findings):
        faults.append("other violations")
    return [f"{domain} shifted by {by_ns}: {fault}" for fault in faults]


def _is_guessed(world: World) -> bool:
    """Of what nobody is known to have waited for, the wall clock says how long clocks drifted."""
    return world.assumptions.drift_ppm > 0 and any(
        each.parent is not None
        and each.is_remote
        and not (each.kind == SERVER or each.parent.kind == CLIENT)
        for each in world.operations
    )


def path_faults(world: World) -> Faults:
    """Such a constant changes no path, where no child has to be placed by the offset itself."""
    if not _needs_no_offset(world):
        return []
    rng = Random(world.seed)
    name = rng.choice(sorted(world.hosts))
    by_ns = rng.choice((-1, 1)) * MS * rng.randint(1, 10**6)
    one = process(world.spans(), world.assumptions)
    other = process(world.spans({name: by_ns}), world.assumptions)
    faults = []
    for before, after in zip(one.paths.roots, other.paths.roots, strict=True):
        if _sections(before.e2e) != _sections(after.e2e):
            faults.append(f"{name} shifted by {by_ns}: another path")
        if _shows_in_one_place(world) and _first(before) != _first(after):
            faults.append(f"{name} shifted by {by_ns}: another path to the first content")
    if _said(one.findings) != _said(other.findings):
        faults.append(f"{name} shifted by {by_ns}: other violations")
    return faults


def _needs_no_offset(world: World) -> bool:
    """Section 2.5: no operation has remote children beside local ones, and nothing is linked."""
    kinds: dict[bytes, set[bool]] = {}
    for each in world.operations:
        if each.parent is not None:
            kinds.setdefault(each.parent.span_id, set()).add(each.is_remote)
    return not any(len(found) == 2 for found in kinds.values()) and not any(
        each.links or each.events for each in world.operations
    )


def _shows_in_one_place(world: World) -> bool:
    """Which of two contents came first is asked of one clock."""
    return len({each.process.host for each in world.operations if each.content is not None}) < 2


def _first(root: RootPaths) -> list[tuple[bytes, str, int]] | None:
    return _sections(root.ttft) if root.ttft is not None else None


def _sections(path: Path) -> list[tuple[bytes, str, int]]:
    return [(each.span.span_id, each.label.value, each.duration_ns) for each in path.sections]


def _moved(interval: Interval, by_ns: int) -> Interval:
    low, high = interval
    return Interval(None if low is None else low + by_ns, None if high is None else high + by_ns)


def _said(findings: Sequence[Finding]) -> Mapping[object, int]:
    """Violations without what depends on a clock."""
    return Counter(
        (each.kind, frozenset(each.witnesses), each.amount_ns) for each in violations(findings)
    )


def wider_faults(world: World, found: AlignedTrace) -> Faults:
    """More tolerance makes no violation, and no interval narrower."""
    rng = Random(world.seed)
    resolution_ns = world.assumptions.resolution_ns
    if resolution_ns is not None:
        resolution_ns *= rng.choice((1, 2, 1_000))
    wide = replace(
        world.assumptions,
        tail_ns=world.assumptions.tail_ns + rng.choice((0, 1, MS)),
        resolution_ns=resolution_ns,
        drift_ppm=world.assumptions.drift_ppm + rng.choice((0, 1, 500)),
    )
    again = aligned(world.spans(), wide)
    before, after = violations(found.findings), violations(again.findings)
    if before:
        return []  # what was left out as impossible may bound something now
    if after:
        return [f"wider tolerances {wide} made {after[0]}"]
    return [
        f"wider tolerances {wide} narrowed {domain}: {offset.interval}"
        for domain, offset in found.clocks.offsets.items()
        if not contains(again.clocks.offsets[domain].interval, offset.interval)
    ]


def edge_faults(world: World, found: AlignedTrace) -> Faults:
    """Every message goes from an edge of one span to an edge of another that it can go to."""
    witnesses = Witnesses(world, world.spans(), domains_of(world, found))
    return [fault for message in found.clocks.messages for fault in witnesses.faults(message)]


Check = Callable[[World, AlignedTrace], Faults]

ALWAYS: Final[dict[str, Check]] = {
    "domain": domain_faults,
    "truth": truth_faults,
    "violation": lambda world, found: violation_faults(world, found.findings),
    "tightness": tightness_faults,
    "text": text_faults,
}
IN_TURN: Final[dict[str, Check]] = {
    "order": order_faults,
    "shift": shift_faults,
    "tolerance": wider_faults,
    "edge": edge_faults,
    "pipeline": lambda world, found: pipeline_faults(world),
    "path": lambda world, found: path_faults(world),
}
"""Each costs as much as a world does; so in a soak each world has one of them."""
