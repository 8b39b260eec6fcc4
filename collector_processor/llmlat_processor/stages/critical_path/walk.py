"""The backward walk that turns operations into accounts of their time.

    S  ├────────────────────────────────────┤ cursor
    a    ├─────┤                                        from the end: S owns what is after c,
    b       ├────────┤                                  then c is entered, then what ended last
    c                     ├───────────┤                 before c began (b; a is hidden)

Explicit predecessors come first: they bar siblings that began before the instant at which the
edge leaves them. Frames live on a list, so depth costs no recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import accumulate, pairwise
from typing import Final

from llmlat_processor.stages.critical_path.account import Account, EdgeRow, Part, cut
from llmlat_processor.stages.critical_path.exchange import exchange_first, exchange_whole
from llmlat_processor.stages.critical_path.labels import label_gaps
from llmlat_processor.stages.critical_path.tree import Before, Node, Tree
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

EXPLICIT: Final = "explicit"
INFERRED: Final = "inferred"

_DERIVED: Final = Evidence.DERIVED  # looked up once: a look-up costs as much as a call on 3.11


class Extent(Enum):
    """How much of an operation a frame covers, and so what its envelopes are exchanged for."""

    WHOLE = "whole"
    """To its end or last output."""
    FIRST = "first"
    """To an instant before its end: at most the callee's first output."""
    INNER = "inner"
    """To where its own callee began: the envelopes stand."""


_WORK: Final = SectionLabel.WORK
_WHOLE: Final = Extent.WHOLE
_INNER: Final = Extent.INNER


class Frame:
    """One operation being walked, from `cursor` back to `lo_ns`."""

    __slots__ = (
        "cursor",
        "extent",
        "gaps",
        "items",
        "lo_ns",
        "node",
        "pending",
        "plain_label",
        "position",
        "previous",
        "uncut",
    )

    def __init__(self, node: Node, cursor: int, lo_ns: int, extent: Extent) -> None:
        self.node = node
        self.cursor = cursor
        self.uncut = cursor == node.end_ns and lo_ns == node.start_ns
        self.lo_ns = lo_ns
        self.extent = extent
        self.position = 0
        self.items: list[Part | None] = []
        self.gaps: list[tuple[int, int]] = []
        self.pending: Before | None = None
        self.previous: Node | None = None
        plain = node.facts is None and node.call is None
        self.plain_label = node.rest_label if plain else None

    def own(self, from_ns: int) -> None:
        """The operation answers for the time from an instant up to the cursor."""
        if from_ns < self.cursor:
            if self.plain_label is not None:
                size = self.cursor - from_ns
                self.items.append((self.node, self.plain_label, _DERIVED, size))
            else:
                self.items.append(None)  # a place for the pieces of this gap
                self.gaps.append((from_ns, self.cursor))
            self.cursor = from_ns


def walk_whole(tree: Tree, node: Node) -> Account:
    """Account for an operation from its start to its end."""
    return Walk(tree, [Frame(node, node.end_ns, node.start_ns, Extent.WHOLE)]).run()


def frames_down(chain: Sequence[Node], at_ns: int, extent: Extent) -> list[Frame]:
    """Frames from an ancestor down to the last node of a chain, which is entered at `at_ns`.

    What lies above the last one is entered where the one below it began ("climb").
    """
    if len(chain) == 1:
        return [_frame_at(chain[0], chain[0].start_ns, at_ns, extent)]
    frames: list[Frame] = []
    chain = _still_open(chain)
    floors = list(accumulate((node.start_ns for node in chain), max))
    for (node, below), floor in zip(pairwise(chain), floors, strict=False):
        frame = Frame(node, floor, floor, _climbed(node, below))
        frame.cursor = max(node.end_ns, below.start_ns)  # until the one below has been walked
        frames.append(frame)
    frames.append(_frame_at(chain[-1], floors[-1], at_ns, extent))
    return frames


def _frame_at(last: Node, floor_ns: int, at_ns: int, extent: Extent) -> Frame:
    return Frame(last, max(floor_ns, min(at_ns, last.end_ns)), floor_ns, extent)


def _still_open(chain: Sequence[Node]) -> list[Node]:
    """The chain without those that had ended when the one below began: they account for nothing.

    A root stays: nobody else could own its time.
    """
    kept = [chain[-1]]
    for node in reversed(chain[:-1]):
        if node.end_ns >= kept[-1].start_ns or node.parent is None:
            kept.append(node)
    return kept[::-1]


def _climbed(node: Node, below: Node) -> Extent:
    """A call that is entered where its own callee began cannot be exchanged for it."""
    if not below.remote and node.start_ns < node.last_content_ns <= below.start_ns:
        return Extent.WHOLE
    if below.remote or node.facts is None or not node.facts.has_envelopes:
        return Extent.INNER
    return Extent.FIRST


class Walk:
    """One walk: frames in, an account out."""

    def __init__(self, tree: Tree, frames: list[Frame]) -> None:
        self.tree = tree
        self.frames = frames
        self.edges: list[EdgeRow] = []
        self.epsilon = tree.epsilon_ns(frames[-1].node)

    def run(self) -> Account:
        """Walk until the outermost frame has been accounted for."""
        while True:
            frame = self.frames[-1]
            if self._step_in(frame):
                continue
            self.frames.pop()
            account = self._closed(frame)
            if not self.frames:
                return account
            self._left(self.frames[-1], frame, account)

    def _step_in(self, frame: Frame) -> bool:
        """Consume leaves; True once a child was pushed that must be walked itself."""
        while True:
            self._pass_leaves(frame)
            child = self._next(frame)
            if child is not None:
                pushed = self._enter(frame, child)
            elif frame.pending is not None:
                pushed = self._enter_predecessor(frame, frame.pending)
            else:
                return False
            if pushed:
                return True

    def _pass_leaves(self, frame: Frame) -> None:
        """Go back over consecutive plain leaves: what most operations are, in one loop."""
        node, label, lo_ns, cursor = frame.node, frame.plain_label, frame.lo_ns, frame.cursor
        if label is None or frame.pending is not None:
            return
        joined, position, previous = node.joined, frame.position, frame.previous
        awaited = self.tree.awaited
        if awaited and previous is None and not awaited.isdisjoint(joined[position : position + 1]):
            return
        add, note = frame.items.append, self.edges.append
        for position in range(frame.position, len(joined)):
            child = joined[position]
            until, start = child.until_ns, child.start_ns
            if (
                not lo_ns <= start <= until <= cursor
                or not child.leaf
                or child.facts is not None
                or child.before is not None
                or child.parent is not node
            ):
                break
            if until < cursor:
                add((node, label, _DERIVED, cursor - until))
            if start < until:
                add((child, _WORK, _DERIVED, until - start))
            if previous is not None and previous is not child:
                note((child.span.span_id, previous.span.span_id, INFERRED))
            cursor, previous = start, child
        else:
            position = len(joined)
        frame.position, frame.cursor, frame.previous = position, cursor, previous

    def _next(self, frame: Frame) -> Node | None:
        """The next child that the path goes to: none that ended after the cursor, none barred."""
        joined, pending = frame.node.joined, frame.pending
        while frame.position < len(joined):
            child = joined[frame.position]
            until = child.until_ns
            if until <= frame.lo_ns:
                frame.position = len(joined)
                break
            if pending is not None and until <= pending.at_ns:
                break
            frame.position += 1
            if until - self.epsilon <= frame.cursor and (
                pending is None
                or (child.start_ns >= pending.at_ns and child is not pending.chain[0])
            ):
                return child
        return None

    def _enter(self, frame: Frame, child: Node) -> bool:
        if child.until_ns < frame.cursor:
            frame.own(child.until_ns)
        if frame.previous is None:
            if child in self.tree.awaited and child.parent is frame.node:
                self.edges.append((child.span.span_id, frame.node.span.span_id, EXPLICIT))
        elif frame.previous is not child:
            self.edges.append((child.span.span_id, frame.previous.span.span_id, INFERRED))
        if child.parent is not frame.node:
            return self._push_adopted(frame, child)
        start = child.start_ns
        if start < frame.lo_ns or start > frame.cursor:
            start = min(max(start, frame.lo_ns), frame.cursor)
        if child.account is not None:
            clipped = child.end_ns - frame.cursor
            frame.items.append(cut(child.account, start - child.start_ns, clipped))
        elif child.facts is None and not child.joined:
            if start < frame.cursor:
                frame.items.append((child, child.rest_label, _DERIVED, frame.cursor - start))
        else:
            self.frames.append(Frame(child, frame.cursor, start, Extent.WHOLE))
            return True
        self._passed(frame, child, start)
        return False

    def _push_adopted(self, frame: Frame, child: Node) -> bool:
        """A child that outlived its parent: before its start the path is in its own parent."""
        chain = [child]
        for ancestor in child.ancestors():
            if ancestor is frame.node:
                break
            chain.append(ancestor)
        if not self.tree.afford(len(chain)):
            return False
        self._push(frame, frames_down(chain[::-1], frame.cursor, Extent.WHOLE))
        self.edges.append((child.span.span_id, frame.node.span.span_id, INFERRED))
        return True

    def _enter_predecessor(self, frame: Frame, edge: Before) -> bool:
        frame.pending = None
        at_ns = min(edge.at_ns, frame.cursor)
        frame.own(max(at_ns, frame.lo_ns))
        if at_ns <= frame.lo_ns:
            return False
        target = edge.target
        if frame.previous is not None and frame.previous is not target:
            self.edges.append((target.span.span_id, frame.previous.span.span_id, EXPLICIT))
        extent = Extent.WHOLE if at_ns >= target.last_content_ns else Extent.FIRST
        self._push(frame, frames_down(edge.chain, at_ns, extent))
        return True

    def _push(self, frame: Frame, frames: list[Frame]) -> None:
        """Frames that account for no more than what is left of the one that they are entered from.

        Within the resolution of a clock one of them may have begun after that.
        """
        floor, ceiling = frame.lo_ns, frame.cursor
        for pushed in frames:
            floor = pushed.lo_ns = min(max(pushed.lo_ns, floor), ceiling)
            pushed.cursor = max(pushed.cursor, floor)
        self.frames.extend(frames)
        last = frames[-1]
        last.cursor = min(last.cursor, ceiling)
        node = last.node
        if last.extent is _WHOLE and node.account is not None:
            # Exchanged as a whole, then clipped: part of a call's waiting is no measure of it.
            self.frames.pop()
            tail_ns = node.end_ns - last.cursor
            outer = self.frames[-1]
            outer.items.append(cut(node.account, last.lo_ns - node.start_ns, tail_ns))
            self._passed(outer, node, last.lo_ns)

    def _left(self, frame: Frame, inner: Frame, account: Account) -> None:
        if account.parts:
            frame.items.append(account)
        self._passed(frame, inner.node, max(inner.lo_ns, frame.lo_ns))

    def _passed(self, frame: Frame, child: Node, start_ns: int) -> None:
        frame.cursor = min(start_ns, frame.cursor)
        frame.previous = child
        if child.before is not None:
            limit = start_ns + self.epsilon
            edge = next((edge for edge in child.before if edge.at_ns <= limit), None)
            frame.pending = edge or frame.pending

    def _closed(self, frame: Frame) -> Account:
        """What a finished frame found, in time order."""
        frame.own(frame.lo_ns)
        edges, self.edges = (self.edges, []) if not self.frames else ((), self.edges)
        if frame.plain_label is not None:
            return Account([item for item in reversed(frame.items) if item is not None], edges)
        return Account(_explained(self.tree, frame), edges)


def leaf_account(tree: Tree, node: Node) -> Account:
    """Account for an operation that waited for nobody."""
    frame = Frame(node, node.end_ns, node.start_ns, _WHOLE)
    frame.own(node.start_ns)
    return Account(_explained(tree, frame))


def _explained(tree: Tree, frame: Frame) -> list[Part]:
    """A frame's time with labels on what is owned, and the waiting exchanged."""
    node, facts = frame.node, frame.node.facts
    epsilon_ns = tree.epsilon_ns(node)
    known_ns = facts.overflow_ns if facts is not None else 0
    gaps = frame.gaps[::-1]
    rows = iter(label_gaps(node, gaps, whole=frame.uncut, epsilon_ns=epsilon_ns))
    if facts is not None and facts.overflow_ns != known_ns:
        excess = facts.overflow_ns + epsilon_ns
        tree.find(FindingKind.PHASE_OVERFLOW, node, excess, epsilon_ns=epsilon_ns)
    parts: list[Part] = []
    for item in reversed(frame.items):
        if item is None:
            parts += next(rows)
        else:
            parts.append(item)
    if node.call is not None and frame.extent is not _INNER:
        exchange = exchange_whole if frame.extent is _WHOLE else exchange_first
        parts = exchange(tree, node, parts)
    rest = node.rest_label  # what time under no phase is called
    return [
        (node, rest, part[2], part[3]) if isinstance(part, tuple) and part[1] is None else part
        for part in parts
    ]
