"""Makes the schedules of a trace's roots from its tree: the facts of a what-if, and no rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.schedule import NOBODY, Clipped, Leaving, Operation, Schedule
from llmlat_processor.stages.critical_path.account import Account, flatten, length
from llmlat_processor.stages.critical_path.paths import explained_tree
from llmlat_processor.stages.critical_path.sink import subtree
from llmlat_processor.stages.critical_path.tree import Before, Node, Tree
from llmlat_processor.stages.critical_path.walk import Extent, Walk, frames_down, walk_whole
from llmlat_semconv.phases import Phase

_PHASES: Final = frozenset(phase.value for phase in Phase)
"""What a what-if can name; what the processor derives has no length of its own to change."""


def schedules(aligned: AlignedTrace) -> dict[Span, Schedule]:
    """Make the schedule of every root of a trace."""
    tree = explained_tree(aligned)
    members = {root: subtree(root) for root in tree.roots}
    # Before any account is kept: an edge that is entered clipped walks what it passes anew.
    leaving = {
        node: [(edge, _clipped(tree, edge)) for edge in node.before]
        for below in members.values()
        for node in below
        if node.before
    }
    for below in members.values():
        _keep_accounts(tree, below)
    return {
        root.span: Schedule(tuple(_Plan(tree, below, leaving).operations()))
        for root, below in members.items()
    }


_Edges = Mapping[Node, list[tuple[Before, "list[tuple[Node, str, int]] | None"]]]


def _clipped(tree: Tree, edge: Before) -> list[tuple[Node, str, int]] | None:
    """What lies before the instant at which an edge leaves an operation that goes on."""
    if edge.at_ns >= edge.chain[0].until_ns:
        return None
    sizes: dict[tuple[Node, str], int] = {}
    for node, label, _, size in flatten(
        Walk(tree, frames_down(edge.chain, edge.at_ns, Extent.FIRST)).run()
    ):
        if label is not None and label.value in _PHASES:
            key = node, label.value
            sizes[key] = sizes.get(key, 0) + size
    return [(node, label, size) for (node, label), size in sizes.items()]


def _keep_accounts(tree: Tree, below: list[Node]) -> None:
    """The innermost first, so that each is walked once, however deep the tree is."""
    for node in reversed(below):
        if node.facts is not None and node.account is None:
            node.account = walk_whole(tree, node)


class _Plan:
    """One root's operations, numbered."""

    def __init__(self, tree: Tree, below: list[Node], leaving: _Edges) -> None:
        self._tree = tree
        self._below = below
        self._leaving = leaving
        self._numbers = {node: number for number, node in enumerate(below)}
        self._origins = {child: node.start_ns for node in below for child in node.joined}

    def operations(self) -> Iterator[Operation]:
        return map(self._operation, self._below)

    def _operation(self, node: Node) -> Operation:
        origin_ns = self._origins.get(node, node.start_ns)
        call = node.call
        callee = None if call is None or call.rejected else call.callee
        started = sorted(node.joined, key=attrgetter("start_ns", "until_ns", "span.span_id"))
        ended = sorted(node.joined, key=attrgetter("until_ns"))
        return Operation(
            span_id=node.span.span_id,
            start_ns=node.start_ns - origin_ns,
            until_ns=node.until_ns - origin_ns,
            length_ns=node.end_ns - node.start_ns,
            counted_ns=_counted_ns(node),
            epsilon_ns=self._tree.epsilon_ns(node),
            joined=tuple(self._numbers[child] for child in started),
            ended=tuple(self._numbers[child] for child in ended),
            before=tuple(self._edges(node, origin_ns)),
            callee=NOBODY if callee is None else self._numbers.get(callee, NOBODY),
            pieces=_pieces(node),
        )

    def _edges(self, node: Node, origin_ns: int) -> Iterator[Leaving]:
        for edge, clipped in self._leaving.get(node, ()):
            rows = None if clipped is None else tuple(self._rows(clipped))
            sibling = self._numbers.get(edge.chain[0], NOBODY)
            yield Leaving(sibling, edge.at_ns - origin_ns, rows)

    def _rows(self, clipped: list[tuple[Node, str, int]]) -> Iterator[Clipped]:
        return (Clipped(self._numbers[node], label, size) for node, label, size in clipped)


def _counted_ns(node: Node) -> int:
    """How much of an operation somebody can wait for: a callee's up to its last output."""
    if node.output is not None:
        return node.output.total_ns
    parent = node.parent
    if parent is None or node.foreign:
        return node.end_ns - node.start_ns
    return max(0, node.until_ns - max(node.start_ns, parent.start_ns))


def _pieces(node: Node) -> dict[str, tuple[tuple[int, int], ...]]:
    """Where in its time an operation itself is in a phase."""
    account = node.output or node.account
    if account is None:
        return {}  # it says nothing of itself, so nobody can name its time
    pieces: dict[str, list[tuple[int, int]]] = {}
    at_ns, end_ns = 0, account.total_ns
    for part in account.parts if isinstance(account, Account) else account.account.parts:
        after_ns = min(at_ns + length(part), end_ns)
        if isinstance(part, tuple) and part[0] is node and part[1] is not None:
            label = part[1].value
            if label in _PHASES:
                pieces.setdefault(label, []).append((at_ns, after_ns))
        at_ns = after_ns
    return {label: tuple(stretches) for label, stretches in pieces.items()}
