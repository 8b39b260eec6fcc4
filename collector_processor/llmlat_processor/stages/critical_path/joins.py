"""Which operations an end waited for: joined children, and those that outlived their parent.

    parent  ──────────────          joined: ends before the parent does
      child   ──────
      child       ────────────      outlives it: joins the nearest ancestor that ends later,
                                    and before its start the path is in its own parent

Stamps are compared within one clock domain only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter

from llmlat_processor.model import SERVER
from llmlat_processor.relations import joined_ids, relationship
from llmlat_processor.stages.critical_path.calls import is_one_way
from llmlat_processor.stages.critical_path.tree import NOBODY, Node, Tree
from llmlat_semconv.values import FindingKind, LinkRelationship

_BY_START_AND_ID = attrgetter("start_ns", "span.span_id")
_UNTIL = attrgetter("until_ns")


def join_children(tree: Tree) -> None:
    """Fill `joined` of every node of a tree whose calls are known, and `awaited` of the tree."""
    speaking = [node for node in tree.order if node.span.events or node.span.links]
    by_id = {node.span.span_id: node for node in tree.order} if speaking else {}
    tree.awaited = frozenset(_awaited(speaking, by_id))
    joining = _Joining(tree)
    for parent in tree.order:
        if parent.children:
            joining.join_children(parent)
    for node in tree.order:
        if len(node.joined) > 1:
            # Children come in (start, span id) order, which a stable sort keeps among equals.
            if node.facts is not None or node in joining.adopters:
                node.joined.sort(key=_BY_START_AND_ID)
            node.joined.sort(key=_UNTIL, reverse=True)


def _awaited(speaking: list[Node], by_id: dict[bytes, Node]) -> Iterator[Node]:
    """Children that their parent says it waited for."""
    for node in speaking:
        for joined in joined_ids(node.span):
            child = by_id.get(joined)
            if child is not None and child.parent is node:
                yield child
        for link in node.span.links:
            if relationship(link.attributes) == LinkRelationship.JOINED:
                child = by_id.get(link.span_id)
                if child is not None and child.parent is node:
                    yield child


class _Joining:
    """Who waits for which child."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._awaited = tree.awaited
        self._heights = _Heights()
        self._ends_of: Node | None = None
        self._ends: list[int] = []
        self.adopters: set[Node] = set()

    def join_children(self, parent: Node) -> None:
        """Have a parent, or somebody above it, wait for its children."""
        epsilon = self._tree.epsilon_ns(parent)
        start, end = parent.start_ns - epsilon, parent.end_ns + epsilon
        joined: list[Node] = []
        for child in parent.children:
            if child.foreign or (child.remote and parent.call is not None):
                continue  # its stamps say nothing here; a call's callee comes by durations
            if child.start_ns < start:
                early = parent.start_ns - child.start_ns
                self._tree.find(FindingKind.SAME_DOMAIN_ORDER, child, early, parent)
            if (
                child.facts is None and child.end_ns <= end and not is_one_way(child)
            ) or self._is_joined(parent, child, child.end_ns > end):
                joined.append(child)
        if parent.joined is not NOBODY:  # it has adopted others
            parent.joined.extend(joined)
        elif joined:
            parent.joined = joined

    def _is_joined(self, parent: Node, child: Node, is_late: bool) -> bool:
        facts = child.facts
        if facts is not None and facts.lost:
            return False
        if child in self._awaited:
            if is_late:
                if child.play is None:  # of two clocks, that is for their messages to say
                    late_ns = child.end_ns - parent.end_ns
                    self._tree.find(FindingKind.SAME_DOMAIN_ORDER, child, late_ns, parent)
                child.until_ns = parent.end_ns
            return True
        if self._is_let_go(parent, child):
            return False
        if is_late and not self._may_fit(parent, child):
            self._outlive(parent, child)
        return not is_late

    def _may_fit(self, parent: Node, child: Node) -> bool:
        """Whether only where its clock was placed makes a child outlive its parent."""
        play = child.play
        return play is not None and child.end_ns - play.earlier_ns <= parent.end_ns

    def _outlive(self, parent: Node, child: Node) -> None:
        if not _is_listener(parent, child):
            late_ns = child.end_ns - parent.end_ns
            self._tree.find(FindingKind.OUTLIVED_PARENT, child, late_ns, parent)
        latest = child.end_ns - self._tree.epsilon_ns(parent)
        ancestor = self._heights.nearest(parent, latest)
        if ancestor is not None:
            ancestor.wait_for(child)
            self.adopters.add(ancestor)

    def _is_let_go(self, parent: Node, child: Node) -> bool:
        """Nobody waits for a message's consumer, nor for what was cancelled and replaced."""
        if is_one_way(child):
            return True
        return bool(child.facts and child.facts.cancelled) and self._is_replaced(parent, child)

    def _is_replaced(self, parent: Node, child: Node) -> bool:
        """A cancelled child is off the path only if an uncancelled sibling ended during it."""
        if self._ends_of is not parent:
            self._ends_of = parent
            self._ends = sorted(
                sibling.end_ns
                for sibling in parent.children
                if not sibling.foreign and not (sibling.facts and sibling.facts.cancelled)
            )
        first = bisect_left(self._ends, child.start_ns)
        return first < len(self._ends) and self._ends[first] <= child.end_ns


def _is_listener(parent: Node, child: Node) -> bool:
    """Whether something in a server merely watches for its caller, until it is let go.

    Our span of one ends with its last byte; an engine's does not say. What says nothing of itself
    and was under way then kept nobody waiting; what begins only afterwards is work in the
    background, and outlives the request.
    """
    facts = parent.facts
    if parent.span.kind != SERVER or facts is None or not facts.ours:
        return False
    if facts.boundary and not facts.is_gateway:
        return False
    return child.start_ns < parent.end_ns and child.facts is None and child.call is None


class _Heights:
    """The nearest ancestor that ends late enough, in O(log depth).

    Each node points to its nearest local ancestor with a later end; along these pointers ends
    rise, so a second, longer jump per node makes the search logarithmic (Myers, "An applicative
    random-access stack", 1983). A deep chain of fire-and-forget spans costs no more than a wide
    one.
    """

    def __init__(self) -> None:
        self._above: dict[Node, tuple[Node | None, Node | None, int]] = {}

    def nearest(self, node: Node, end_ns: int) -> Node | None:
        """The nearest of a node and its ancestors in its process that ends at `end_ns` or later."""
        self._build(node)
        found: Node | None = node
        while found is not None and found.end_ns < end_ns:
            above, jump, _ = self._above[found]
            found = jump if jump is not None and jump.end_ns < end_ns else above
        return found

    def _build(self, node: Node) -> None:
        missing = []
        upward: Node | None = node
        while upward is not None and upward not in self._above:
            missing.append(upward)
            upward = None if upward.remote or upward.foreign else upward.parent
        for below in reversed(missing):
            self._add(below)

    def _add(self, node: Node) -> None:
        parent = None if node.remote or node.foreign else node.parent
        if parent is None:
            self._above[node] = (None, None, 0)
            return
        above = self._later(parent, node.end_ns)
        if above is None:
            self._above[node] = (None, None, 0)
            return
        _, jump, depth = self._above[above]
        far = self._above[jump] if jump is not None else None
        long_jump = above
        if jump is not None and far is not None and depth - far[2] == far[2] - self._depth(far[1]):
            long_jump = far[1] if far[1] is not None else above
        self._above[node] = (above, long_jump, depth + 1)

    def _depth(self, node: Node | None) -> int:
        return self._above[node][2] if node is not None else 0

    def _later(self, node: Node, end_ns: int) -> Node | None:
        found: Node | None = node
        while found is not None and found.end_ns <= end_ns:
            above, jump, _ = self._above[found]
            found = jump if jump is not None and jump.end_ns <= end_ns else above
        return found
