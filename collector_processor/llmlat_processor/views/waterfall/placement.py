"""Where operations, phases and sections of one root stand on the root's own clock.

Of an operation with another clock only the sections of a path have a place, which follows from
durations; the rest of it has none, and its raw stamps are never drawn:

    root clock    |--- call ------------------------|
    sections          |queue|prefill|decode|            placed by durations
    raw stamps                                 |---- engine ----|   never drawn
    band                  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒           where the offset of its clock allows it

What is known of the offset says where the whole operation can have been. That moves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.model import (
    UNKNOWN,
    Clocks,
    ExplainedTrace,
    Interval,
    Path,
    RootPaths,
    Section,
    Span,
)

OFF: Final = 0
ON_TTFT: Final = 1
ON_E2E: Final = 2


SectionsBySpan = Mapping[Span, Sequence[Section]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Nanoseconds from the root's start, and the path that this time is on.

    Attributes:
        on: `OFF`, `ON_TTFT` or `ON_E2E`.
    """

    start_ns: int
    end_ns: int
    on: int


@dataclass(frozen=True, slots=True)
class Band:
    """Where an operation of another clock can have been, in nanoseconds from the root's start.

    Attributes:
        start_ns: the earliest that its start can have been.
        end_ns: the latest that its end can have been.
        spread_ns: between its earliest and its latest place.
    """

    start_ns: int
    end_ns: int
    spread_ns: int


class Placement:
    """One root of a finished trace, with everything addressed from the root's start.

    Attributes:
        root: index of the root among the operations.
        children: indices of an operation's children, in the order in which they are drawn.
        e2e: the sections of the end-to-end path, by operation.
        ttft: the same of the path to the first useful content.
        content_ns: the first useful content; None where there is none, or where its path
            counts on another clock.
    """

    def __init__(self, explained: ExplainedTrace, paths: RootPaths) -> None:
        self._trace, self._aligned, self._paths = explained.trace, explained.aligned, paths
        operations = explained.trace.operations
        self.root = next(i for i, span in enumerate(operations) if span is paths.root)
        self.e2e = _by_span(paths.e2e)
        self.ttft = _by_span(paths.ttft)
        counts_here = paths.ttft is not None and paths.ttft.root is paths.root
        self.content_ns = paths.ttft.duration_ns if paths.ttft and counts_here else None
        self._drawn_ttft: SectionsBySpan = self.ttft if counts_here else {}
        self._origin_ns = paths.e2e.sections[0].start_ns if paths.e2e.sections else 0
        self._members = self._below_the_root()
        self._same_clock = self._operations_on_the_root_clock()
        self.children = self._in_drawing_order()

    def operation(self, index: int) -> Span:
        """Give the operation at an index."""
        return self._trace.operations[index]

    def parent(self, index: int) -> int:
        """Give the index of the operation's parent, -1 for none."""
        return self._trace.parents[index]

    def phases(self, index: int) -> Sequence[Span]:
        """Give the phase spans that label the operation's time."""
        return self._trace.phases.get(index, ())

    def on_e2e(self, span: Span) -> bool:
        """Tell whether the end-to-end path passes through the operation."""
        return span in self.e2e or span in self._paths.self_times_ns

    def on_ttft(self, span: Span) -> bool:
        """Tell whether the path to the first useful content passes through the operation."""
        return span in self.ttft or span in self._paths.ttft_self_times_ns

    def own_stretch(self, index: int) -> tuple[Stretch, ...]:
        """Give the operation from start to end; nothing where its clock is not the root's."""
        if index not in self._same_clock:
            return ()
        start = self._aligned.starts_ns[index] - self._aligned.starts_ns[self.root]
        return (Stretch(start, start + self.operation(index).duration_ns, OFF),)

    def band(self, index: int) -> Band | None:
        """Give where the operation can have been; None on the root's clock, or where unbounded."""
        if index in self._same_clock:
            return None
        domains = self._aligned.domains
        low, high = _offset(self._aligned.clocks, domains[self.root], domains[index])
        if low is None or high is None:
            return None
        raw_ns = self._aligned.starts_ns[index] - self._aligned.starts_ns[self.root]
        length_ns = self.operation(index).duration_ns
        passed_ns = max(0, raw_ns - low + length_ns)
        drift_ns = passed_ns * self._trace.assumptions.drift_ppm // 1_000_000
        earliest, latest = raw_ns - high - drift_ns, raw_ns - low + drift_ns
        return Band(earliest, latest + length_ns, latest - earliest)

    def phase_stretch(self, index: int, position: int) -> tuple[Stretch, ...]:
        """Give one phase span of the operation, by its position among them."""
        if index not in self._same_clock:
            return ()
        placed = self._aligned.phase_starts_ns[index][position]
        start = placed - self._aligned.starts_ns[self.root]
        return (Stretch(start, start + self.phases(index)[position].duration_ns, OFF),)

    def path_stretches(self, span: Span, label: str = "") -> tuple[Stretch, ...]:
        """Give what the operation answers for on the paths, of one label or of all."""
        both = ((self._drawn_ttft, ON_TTFT), (self.e2e, ON_E2E))
        return tuple(
            self._stretch(section, on)
            for sections, on in both
            for section in sections.get(span, ())
            if not label or section.label.value == label
        )

    def _stretch(self, section: Section, on: int) -> Stretch:
        start = section.start_ns - self._origin_ns
        return Stretch(start, start + section.duration_ns, on)

    def _below_the_root(self) -> list[int]:
        """Indices of the root and its descendants, parents first."""
        children: dict[int, list[int]] = defaultdict(list)
        for index, parent in enumerate(self._trace.parents):
            children[parent].append(index)
        members = [self.root]
        for member in members:
            members.extend(children[member])
        return members

    def _operations_on_the_root_clock(self) -> frozenset[int]:
        domains = self._aligned.domains
        return frozenset(i for i in self._members if domains[i] == domains[self.root])

    def _in_drawing_order(self) -> Mapping[int, Sequence[int]]:
        """By place where there is one; what has none keeps its order and comes last."""
        children: dict[int, list[int]] = defaultdict(list)
        for index in self._members[1:]:
            children[self.parent(index)].append(index)
        for siblings in children.values():
            siblings.sort(key=self._drawing_key)
        return children

    def _drawing_key(self, index: int) -> tuple[bool, int, int]:
        known = self.own_stretch(index) or self.path_stretches(self.operation(index))
        return not known, min((one.start_ns for one in known), default=0), index


def _offset(clocks: Clocks, one: str, other: str) -> Interval:
    """How far one domain's clock is ahead of another's, by way of the reference's."""
    near, far = (
        clocks.offsets[each].interval if each in clocks.offsets else UNKNOWN
        for each in (one, other)
    )
    if near.low_ns is None or near.high_ns is None or far.low_ns is None or far.high_ns is None:
        return UNKNOWN
    return Interval(far.low_ns - near.high_ns, far.high_ns - near.low_ns)


def _by_span(path: Path | None) -> SectionsBySpan:
    found: dict[Span, list[Section]] = defaultdict(list)
    for section in path.sections if path is not None else ():
        found[section.span].append(section)
    return dict(found)
