"""The operations of a trace as linked nodes, each knowing its callees and its joined children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from llmlat_processor.facts import ENVELOPE_LABELS, LEAF_LABELS, Facts
from llmlat_processor.model import (
    INTERNAL,
    PARENT_IS_REMOTE,
    AlignedTrace,
    Finding,
    Span,
)
from llmlat_processor.relations import is_remote
from llmlat_semconv.values import FindingKind, SectionLabel

if TYPE_CHECKING:
    from llmlat_processor.stages.critical_path.account import Account, Slice


STEPS_PER_TRACE: Final = 100_000
STEPS_PER_OPERATION: Final = 50

NOBODY: Final[list[Node]] = []
"""Shared by all nodes without children or joined ones, and never changed: most are leaves."""


class Before(NamedTuple):
    """An explicit predecessor: the edge leaves `target` at an instant of the shared clock.

    `chain` leads from the sibling down to the target, which it ends with.
    """

    at_ns: int
    chain: tuple[Node, ...]

    @property
    def target(self) -> Node:
        """The operation that the edge leaves."""
        return self.chain[-1]


class Play(NamedTuple):
    """How much earlier and later than where it was placed an operation may have been."""

    earlier_ns: int
    later_ns: int


class Call:
    """The caller's side of an exchange.

    Attributes:
        callees: the remote children that may be its callee, until one is chosen.
        callee: the account that is used, or None.
        rejected: the callee took longer than the caller waited: off both paths.
        split: the exchanges belong to the attempts below.
        send_overlap_ns: how much of `send` the callee was already at work.
        held_ns: time during which tokens existed and the client had none.
        has_bounds_within: an upper bound that gives way is part of the callee's account.
    """

    __slots__ = (
        "callee",
        "callees",
        "has_bounds_within",
        "held_ns",
        "rejected",
        "send_overlap_ns",
        "split",
    )

    def __init__(self, callees: list[Node]) -> None:
        self.callees = callees
        self.callee: Node | None = None
        self.rejected = False
        self.split = False
        self.send_overlap_ns = 0
        self.held_ns = 0
        self.has_bounds_within = False


class Node:
    """One operation (plain slots: one per span of every trace).

    Attributes:
        remote: its parent lives in another process.
        foreign: its stamps cannot be compared with its parent's.
        play: where else it may be, if only the offsets of clocks say where it is.
        moved_ns: how far from where its own clock has it.
        until_ns: where it ends for those who wait for it; its end, but for a joined child
            that outlives its parent.
        joined: operations that its end waits for, the latest end first.
        before: explicit predecessors, the latest edge first.
        account: its whole time, explained; only calls, callees and duration-only ones.
        output: the same up to its last output, for a callee.
        first: the same up to its first output, for a callee.
    """

    __slots__ = (
        "account",
        "before",
        "call",
        "children",
        "domain",
        "end_ns",
        "facts",
        "first",
        "foreign",
        "joined",
        "leaf",
        "moved_ns",
        "output",
        "parent",
        "play",
        "remote",
        "span",
        "start_ns",
        "until_ns",
    )

    def __init__(self, span: Span, start_ns: int, domain: str, leaf: bool) -> None:
        self.span = span
        self.start_ns = start_ns
        self.end_ns = self.until_ns = start_ns + span.end_ns - span.start_ns
        self.domain = domain
        self.leaf = leaf
        self.parent: Node | None = None
        self.children: list[Node] = NOBODY
        self.remote = False
        self.foreign = False
        self.play: Play | None = None
        self.moved_ns = 0
        self.facts: Facts | None = None
        self.call: Call | None = None
        self.joined: list[Node] = NOBODY
        self.before: list[Before] | None = None
        self.account: Account | None = None
        self.output: Account | Slice | None = None
        self.first: Account | Slice | None = None

    @property
    def rest_label(self) -> SectionLabel:
        """What time under no phase is called: a leaf's is its own, another's is unobserved."""
        facts = self.facts
        if not self.leaf or (facts is not None and facts.has_phases):
            return SectionLabel.UNOBSERVED
        if facts is None:
            return SectionLabel.WORK
        return LEAF_LABELS.get(facts.operation, SectionLabel.WORK)

    @property
    def last_content_ns(self) -> int:
        """Where the last envelope phase ends; its own end unless they are placed, all of them."""
        facts = self.facts
        if facts is None or not ENVELOPE_LABELS.isdisjoint(facts.durations):
            return self.end_ns
        placed = facts.outer
        return max(
            (end for _, end, label, _ in placed if label in ENVELOPE_LABELS), default=self.end_ns
        )

    def move(self, by_ns: int) -> None:
        """Put it elsewhere on the clock that its stamps are compared on, with all that it says."""
        self.start_ns += by_ns
        self.end_ns += by_ns
        self.until_ns += by_ns
        self.moved_ns += by_ns
        if self.facts is not None:
            self.facts.move(by_ns)

    def adopt(self, child: Node) -> None:
        """Make another node a child of this one."""
        child.parent = self
        self.leaf = False
        if self.children is NOBODY:
            self.children = []
        self.children.append(child)

    def wait_for(self, other: Node) -> None:
        """Join an operation: this one's end waits for it."""
        if self.joined is NOBODY:
            self.joined = []
        self.joined.append(other)

    def ancestors(self) -> Iterator[Node]:
        """Parent, grandparent and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def local_tree(self) -> Iterator[Node]:
        """The node and its descendants in the same process, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(child for child in node.children if not child.remote)

    def __repr__(self) -> str:
        return f"Node({self.span!r})"


@dataclass(slots=True)
class Tree:
    """All nodes reachable from the roots, parents first, and what was found on the way.

    Attributes:
        awaited: those that their parent says it waited for.
        placed: those that stand where the offset of their clock puts them.
        unread: operations with latencies that nobody knows how to read, by instrumentation scope.
    """

    aligned: AlignedTrace
    roots: list[Node]
    order: list[Node]
    awaited: frozenset[Node] = frozenset()
    placed: list[Node] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    def afford(self, steps: int) -> bool:
        """Whether some more steps beside the linear ones may be taken for this trace.

        A hostile trace (thousands of links, each across thousands of ancestors) must not hold up
        the others: past the budget an edge or an adoption is left out, and that is a finding.
        """
        self.steps += steps
        if self.steps <= STEPS_PER_TRACE + STEPS_PER_OPERATION * len(self.order):
            return True
        self.find(FindingKind.TRUNCATED_TRACE, self.order[0])
        return False

    def epsilon_ns(self, one: Node, other: Node | None = None) -> int:
        """Tolerance between the stamps of two nodes: their clocks' granularities.

        Of two clocks, what is compared is how much time passed by each while the first was at work:
        one may have run faster than the other.
        """
        resolutions = self.aligned.resolutions_ns
        if other is None or other.domain == one.domain:
            return resolutions[one.domain]
        drift_ns = (one.end_ns - one.start_ns) * self._drift_ppm // 1_000_000
        return resolutions[one.domain] + resolutions[other.domain] + drift_ns

    @property
    def _drift_ppm(self) -> int:
        return self.aligned.trace.assumptions.drift_ppm

    @property
    def tail_ns(self) -> int:
        """How long a server's span may go on after its last output."""
        return self.aligned.trace.assumptions.tail_ns

    def let_go(self) -> None:
        """Part the nodes, so that they go at once: they hold each other in circles.

        Else they stay until the garbage collector has found them, which costs more than this.
        """
        for node in self.order:
            node.parent = node.call = node.before = None
            node.account = node.output = node.first = None
            node.children = node.joined = NOBODY

    def find(
        self,
        kind: FindingKind,
        node: Node,
        amount_ns: int | None = None,
        *witnesses: Node,
        epsilon_ns: int | None = None,
    ) -> None:
        """Add a finding about a node; the node is the first witness."""
        ids = tuple(witness.span.span_id for witness in (node, *witnesses))
        self.findings.append(Finding(kind, ids[0], amount_ns, ids, epsilon_ns))


def grow(aligned: AlignedTrace) -> Tree:
    """Link the operations of an aligned trace into a tree of nodes."""
    trace = aligned.trace
    dropped = trace.dropped_children
    nodes = [
        Node(span, start, domain, True)
        for span, start, domain in zip(
            trace.operations, aligned.starts_ns, aligned.domains, strict=True
        )
    ]
    for position in dropped:
        nodes[position].leaf = False
    for node, above in zip(nodes, trace.parents, strict=True):
        if above < 0:
            continue
        parent = node.parent = nodes[above]
        if parent.children:
            parent.children.append(node)
        else:
            parent.children, parent.leaf = [node], False
        span = node.span
        if (
            span.kind != INTERNAL
            or span.flags & PARENT_IS_REMOTE
            or (span.resource is not parent.span.resource)
        ):
            node.remote = is_remote(span, parent.span)
        if node.domain != parent.domain:
            node.foreign = True
    roots = [nodes[position] for position in trace.roots]
    tree = Tree(aligned, roots, _parents_first(roots))
    _read_facts(tree, nodes, aligned)
    return tree


def _read_facts(tree: Tree, nodes: Sequence[Node], aligned: AlignedTrace) -> None:
    phases, known = aligned.trace.phases, cast("dict[int, Facts | None]", aligned.facts)
    for position, node in enumerate(nodes):
        if node.span.attributes or position in phases:
            facts = node.facts = known.pop(position, None) or Facts(
                node.span,
                node.start_ns,
                phases.get(position, ()),
                aligned.phase_starts_ns.get(position, ()),
            )
            for kind, amount_ns, note, epsilon_ns in facts.doubts:
                of = node.span.span_id
                tree.findings.append(Finding(kind, of, amount_ns, (of,), epsilon_ns, note))
            if facts.unread:
                tree.unread[node.span.scope] += 1


def _parents_first(roots: Sequence[Node]) -> list[Node]:
    order = list(roots)
    for node in order:  # grows while it is read: breadth first, no recursion
        order.extend(node.children)
    return order
