"""What-if the slow and obvious way: every dependency graph that the observed times allow.

An independent oracle for plain traces (one process, children inside their parents, no phases):
given who waited for whom, move everything. The processor knows only part of who waited for whom,
so its bound must hold for each graph between what was said and what time allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from tests.cases.case_format import Case, Json

Graph = Mapping[str, frozenset[str]]
"""Per operation, the siblings whose end it waited for."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A plain trace in the unit of its case."""

    case: Case

    def graphs(self, limit: int) -> Iterator[Graph]:
        """Graphs that the times allow, at most `limit`: all of them where there are no more."""
        names = [span["id"] for span in self.case.spans]
        options = [self._options(span) for span in self.case.spans]
        for number, chosen in enumerate(product(*options)):
            if number == limit:
                return
            yield dict(zip(names, chosen, strict=True))

    def fullest(self) -> Graph:
        """Everybody waited for all that had ended; who said for whom, for those and later ones."""
        return {span["id"]: self._said(span) | self._possible(span) for span in self.case.spans}

    def root_end(self, graph: Graph, target: str, change: float) -> float:
        """When the root ends if the leaf `target` takes `change` longer, everything else as seen.

        start' = max(parent's start', ends' of predecessors) + own gap as observed
        end'   = max of the children's ends' + tail as observed; of a leaf start' + length
        """
        return _Moved(self, graph, target, change).end(self._root())

    def children(self, span: Json) -> list[Json]:
        return [other for other in self.case.spans if other["parent"] == span["id"]]

    def is_leaf(self, span: Json) -> bool:
        return not self.children(span)

    def _root(self) -> Json:
        return self.case.spans[0]

    def _options(self, span: Json) -> list[frozenset[str]]:
        """Each set of predecessors that includes what was said."""
        sets = [self._said(span)]
        for possible in sorted(self._possible(span)):
            sets += [chosen | {possible} for chosen in sets]
        return sets

    def _said(self, span: Json) -> frozenset[str]:
        return frozenset(
            link["to_span"] for link in self.case.links if link["from_span"] == span["id"]
        )

    def _possible(self, span: Json) -> frozenset[str]:
        """Siblings that had ended, in an order without cycles among those of no length.

        What was said bars siblings that began before the predecessor's end.
        """
        said = self._said(span)
        since = max((s["end"] for s in self.case.spans if s["id"] in said), default=None)
        return frozenset(
            other["id"]
            for other in self.case.spans
            if other["parent"] == span["parent"] is not None
            and other["end"] <= span["start"]
            and _order(other) < _order(span)
            and (since is None or other["start"] >= since)
        )


def _order(span: Json) -> tuple[float, float, str]:
    return span["end"], span["start"], span["id"]


class _Moved:
    """One schedule, moved along one graph; traces are small, so recursion is the clear form."""

    def __init__(self, schedule: Schedule, graph: Graph, target: str, change: float) -> None:
        self._by_id = {span["id"]: span for span in schedule.case.spans}
        self._schedule = schedule
        self._graph = graph
        self._target = target
        self._change = change

    def start(self, span: Json) -> float:
        if span["parent"] is None:
            return float(span["start"])
        parent = self._by_id[span["parent"]]
        waited_for = [self._by_id[name] for name in self._graph[span["id"]]]
        ready = max([parent["start"], *(before["end"] for before in waited_for)])
        moved = max([self.start(parent), *(self.end(before) for before in waited_for)])
        own_gap: float = span["start"] - ready
        return moved + own_gap

    def end(self, span: Json) -> float:
        children = self._schedule.children(span)
        if not children:
            length: float = span["end"] - span["start"]
            longer = self._change if span["id"] == self._target else 0
            return self.start(span) + length + longer
        tail: float = span["end"] - max(child["end"] for child in children)
        return max(self.end(child) for child in children) + tail
