"""Grows a world: operations that could truly have happened, one under the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Final

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, Assumptions
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Boundary, Evidence, LinkRelationship, OperationName
from llmlat_semconv.version import CONTRACT_VERSION
from tests.properties.clock_hosts import MS, Host, Process, any_hosts, any_process
from tests.properties.clock_world import Bound, Operation, PhaseOf, Told, World

MAX_DEPTH: Final = 5
TAIL_NS: Final = 5 * MS
SECOND_NS: Final = 10**9

Shape = Callable[["Growth", Operation, int, int], None]
"""Puts something into a stretch of true time of an operation."""


class Growth:
    """A world under construction."""

    def __init__(self, seed: int, hosts: Sequence[Host] | None = None) -> None:
        self.rng = Random(seed)
        chosen = any_hosts(self.rng) if hosts is None else hosts
        self.world = World(seed, {host.name: host for host in chosen}, self._assumptions(chosen))
        self.budget = self.rng.choice((3, 8, 15, 30))
        self._numbers = Counter[str]()
        self.processes = [self.new_process(host) for host in chosen]
        for host in chosen:
            if self.rng.random() < 0.2:
                self.processes.append(self.new_process(host))

    def _assumptions(self, hosts: Sequence[Host]) -> Assumptions:
        """No more than these hosts need, or what is taken for granted by default."""
        if any(host.drift_ppb for host in hosts) or self.rng.random() < 0.5:
            return Assumptions()
        coarsest = None
        if all(host.monotonic_ns is None for host in hosts) and self.rng.random() < 0.5:
            coarsest = max(host.resolution_ns for host in hosts)
        tail_ns = self.rng.choice((0, TAIL_NS))
        return Assumptions(tail_ns, coarsest, drift_ppm=self.rng.choice((0, 200)))

    # ── Places ───────────────────────────────────────────────────────────────────────────────────

    def new_process(self, host: Host) -> Process:
        """One more program on a host."""
        self._numbers[host.name] += 1
        return any_process(self.rng, host, self._numbers[host.name])

    def elsewhere(self, operation: Operation) -> Process:
        """Another process, mostly on another host."""
        here = operation.process
        return self.rng.choice([each for each in self.processes if each is not here])

    def believed(self, operation: Operation) -> Process:
        """A process for what only a message reaches.

        How long after the start of the trace that was, nobody knows but its own wall clock: where
        clocks drift it has to be right, or ahead.
        """
        home = self.world.host_of(self.world.root)
        found = self.elsewhere(operation)
        for _ in range(20):
            host = self.world.hosts[found.host]
            if not self.world.assumptions.drift_ppm or host.wall_ns >= home.wall_ns:
                return found
            found = self.elsewhere(operation)
        return operation.process

    # ── Time ─────────────────────────────────────────────────────────────────────────────────────

    def cuts(self, low: int, high: int, number: int) -> list[int]:
        """Instants in ascending order: some coincide, some lie close together."""
        weights = [
            self.rng.choice((0, 1e-6, 1e-3, 1, 1)) * self.rng.random() for _ in range(number)
        ]
        weights.append(self.rng.choice((0, 1e-3, 1)) * self.rng.random())
        total = sum(weights) or 1.0
        sums = list(accumulate(weights))[:-1]
        return [min(high, low + int((high - low) * (part / total))) for part in sums]

    def after(self, instant: int, most: int = 2 * SECOND_NS) -> int:
        """Some time later: now, soon, or much later."""
        return instant + self.rng.choice((0, self.rng.randint(0, MS), self.rng.randint(0, most)))

    def late(self, instant: int) -> int:
        """Within the tail after an instant, by any clock."""
        tail_ns = self.world.assumptions.tail_ns * 999 // 1_000
        return instant + self.rng.choice((0, tail_ns, self.rng.randint(0, tail_ns)))

    # ── Operations ───────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        parent: Operation | None,
        process: Process,
        kind: int,
        start: int,
        end: int,
        told: Told | None = None,
    ) -> Operation:
        """One more operation; on a host whose monotonic clock is told it may still be plain."""
        self.budget -= 1
        span_id = self.rng.randbytes(6) + bytes(2)
        operation = Operation(span_id, parent, process, kind, start, end, dict(told or {}))
        operation.plain = not operation.told and self.rng.random() < 0.2
        self.world.operations.append(operation)
        return operation

    def ours(self, boundary: Boundary, operation: OperationName | None = None) -> Told:
        """What a span of ours says of itself."""
        told: Told = {
            names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
            names.LLMLAT_BOUNDARY_NAME: boundary.value,
        }
        if operation is not None:
            told[names.GEN_AI_OPERATION_NAME] = operation.value
        return told

    def phase(
        self,
        operation: Operation,
        phase: Phase,
        start: int,
        end: int,
        evidence: Evidence = Evidence.MEASURED,
    ) -> bool:
        """A phase of an operation; those of no length are mostly not told."""
        if start == end and self.rng.random() < 0.7:
            return False
        operation.phases.append(PhaseOf(phase, start, end, evidence))
        return True

    def asks(self, caller: Operation, left: int, callee: Operation) -> None:
        """The text: θ <= callee start - first byte sent."""
        self.world.bounds.append(Bound(caller, left, callee, callee.start))

    def answers(
        self, callee: Operation, left: int, caller: Operation, arrived: int, *, tail: bool = False
    ) -> None:
        """The text: θ >= callee's output - what its caller received of it, - tail."""
        tail_ns = self.world.assumptions.tail_ns if tail else 0
        self.world.bounds.append(Bound(callee, left, caller, arrived, tail_ns, is_answer=True))

    def fill(self, operation: Operation, low: int, high: int, shapes: Sequence[Shape]) -> None:
        """Put children into a stretch of an operation, one after the other or side by side."""
        if self.budget <= 0 or _depth(operation) >= MAX_DEPTH:
            return
        number = self.rng.choice((0, 1, 1, 2, 3) if operation.parent else (1, 2, 3, 4))
        if self.rng.random() < 0.6:
            instants = self.cuts(low, high, 2 * number)
            stretches = list(zip(instants[::2], instants[1::2], strict=True))
        else:
            stretches = [
                (first, last) for first, last in (self.cuts(low, high, 2) for _ in range(number))
            ]
        for start, end in stretches:
            self.rng.choice(shapes)(self, operation, start, end)

    # ── The whole ────────────────────────────────────────────────────────────────────────────────

    def root(self, length: int) -> Operation:
        """The first operation: an app's, a server's or an agent's."""
        agent: Told = {names.GEN_AI_OPERATION_NAME: OperationName.INVOKE_AGENT.value}
        kind, told = self.rng.choice(
            ((INTERNAL, {}), (SERVER, {}), (CLIENT, {}), (INTERNAL, agent))
        )
        root = self.add(None, self.rng.choice(self.processes), kind, 0, length, told)
        root.waits = bool(told)
        return root

    def length(self) -> int:
        """From a millisecond to a minute."""
        return int(MS * 60_000 ** self.rng.random())

    def link_some(self) -> None:
        """Links that are true, and links that say nothing of time."""
        operations = self.world.operations
        for _ in range(self.rng.choice((0, 0, 1, 3))):
            one, other = self.rng.choice(operations), self.rng.choice(operations)
            silent = (LinkRelationship.HEDGE_OF, LinkRelationship.KV_SOURCE)
            given_up = other.is_error or names.LLMLAT_STREAM_END in other.told
            if given_up or other is self.world.root:  # at no known time, or above all others
                continue
            if other.end <= one.start:
                waited = self.rng.choice((LinkRelationship.FOLLOWS, LinkRelationship.RETRY_OF))
                one.links.append((other, waited))
                if waited == LinkRelationship.FOLLOWS:  # a try may be repeated while one goes on
                    bound = Bound(other, other.end, one, one.start, is_answer=True)
                    self.world.bounds.append(bound)
            elif other.end <= one.end and one is not other and not _is_above(other, one):
                one.links.append((other, LinkRelationship.JOINED))
                self.world.bounds.append(Bound(other, other.end, one, one.end, is_answer=True))
            elif one is not other:
                one.links.append((other, self.rng.choice(silent)))

    def finished(self) -> World:
        """The world; every process whose monotonic clock is told has told it at least once."""
        told = {each.process.name for each in self.world.operations if not each.plain}
        for operation in self.world.operations:
            if operation.process.name not in told:
                operation.plain = False
                told.add(operation.process.name)
        return self.world


def _depth(operation: Operation) -> int:
    depth = 0
    while operation.parent is not None:
        operation, depth = operation.parent, depth + 1
    return depth


def _is_above(one: Operation, other: Operation) -> bool:
    while other.parent is not None:
        other = other.parent
        if other is one:
            return True
    return False
