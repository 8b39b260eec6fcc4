"""Jaeger's critical path, as its UI and its query service compute it: an oracle for tests.

Restated from jaegertracing/jaeger-ui c321fb32bbca (TracePage/CriticalPath) and jaegertracing/jaeger
8498073ff809 (mcptools/internal/criticalpath), with a loop for their recursion. It differs from
ours on purpose: children that overflow their parent are cut to fit, siblings that touch are
skipped, and every stamp is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class JaegerSpan:
    """What Jaeger looks at; stamps in any unit, but the same for all."""

    id: str
    parent: str | None
    start: int
    end: int
    kind: str = "internal"


@dataclass(frozen=True, slots=True)
class JaegerSection:
    """A stretch of the path; sections come in reverse order of time."""

    span: str
    start: int
    end: int


class NoRootError(Exception):
    """The query service wants a span without a parent."""


def ui_critical_path(spans: Iterable[JaegerSpan]) -> list[JaegerSection]:
    """The UI's: one path after the other for every root; an orphan is a root.

    A consumer blocks no producer: it is left out, with all that hangs under it.
    """
    tree = _Tree(spans)
    return [section for root in tree.ui_roots() for section in tree.path_from(root)]


def query_critical_path(spans: Iterable[JaegerSpan]) -> list[JaegerSection]:
    """The query service's: the path of the first span that has no parent.

    Raises:
        NoRootError: if there is none.
    """
    tree = _Tree(spans)
    roots = [span for span in tree.spans.values() if span.parent is None]
    if not roots:
        raise NoRootError("no root span found")
    return list(tree.path_from(roots[0]))


class _Tree:
    def __init__(self, spans: Iterable[JaegerSpan]) -> None:
        self.spans = {span.id: span for span in spans}
        self._children: dict[str, list[JaegerSpan]] = {}
        for span in self.spans.values():
            if span.parent is not None:
                self._children.setdefault(span.parent, []).append(span)

    def ui_roots(self) -> list[JaegerSpan]:
        """Spans whose parent is not here."""
        return [span for span in self.spans.values() if span.parent not in self.spans]

    def path_from(self, root: JaegerSpan) -> Iterator[JaegerSection]:
        """Walks backwards from the root's end, always into the child that finished last.

        Up at a child's start, the next child is one that finished strictly before that.
        """
        fitting = self._fitting(root)
        current: JaegerSpan | None = root
        returning: int | None = None
        while current is not None:
            end = current.end if returning is None else returning
            child = self._last_finishing(current, fitting, returning)
            start = current.start if child is None else child.end
            if start != end:
                yield JaegerSection(current.id, start, end)
            if child is None:
                returning, current = current.start, fitting.get(current.parent or "")
            else:
                returning, current = None, child

    def _fitting(self, root: JaegerSpan) -> dict[str, JaegerSpan]:
        """The root's tree, parents first, each span cut to fit its parent or dropped."""
        fitting = {root.id: root}
        pending = [root.id]
        while pending:
            parent = fitting[pending.pop()]
            for child in self._children.get(parent.id, ()):
                start, end = max(child.start, parent.start), min(child.end, parent.end)
                if _overlaps(child, parent) and _blocks(child, self.spans[parent.id]):
                    fitting[child.id] = replace(child, start=start, end=end)
                    pending.append(child.id)
        return fitting

    def _last_finishing(
        self, parent: JaegerSpan, fitting: dict[str, JaegerSpan], before: int | None
    ) -> JaegerSpan | None:
        children = [
            fitting[child.id]
            for child in self._children.get(parent.id, ())
            if child.id in fitting and (before is None or fitting[child.id].end < before)
        ]
        return max(children, key=lambda child: child.end, default=None)


def _overlaps(child: JaegerSpan, parent: JaegerSpan) -> bool:
    """A child that starts before its parent must end inside it; another must start there."""
    if child.start >= parent.start:
        return child.start < parent.end
    return child.end > parent.start


def _blocks(child: JaegerSpan, parent: JaegerSpan) -> bool:
    return not (parent.kind == "producer" and child.kind == "consumer")
