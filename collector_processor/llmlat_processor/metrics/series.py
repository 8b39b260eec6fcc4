"""Histograms with labels that the world chooses: at most so many series, and none is lost.

What there is no room for is counted in one series that is marked as such, so that sums and counts
over all series stay right whatever names come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import add

from llmlat_processor.model.families import (
    OVERFLOW,
    Distribution,
    Exemplar,
    Family,
    Labels,
    Number,
)
from llmlat_processor.written import cut
from llmlat_semconv.metrics import Metric


class _Series:
    """What was observed of one set of labels (plain slots: hot path)."""

    __slots__ = ("counts", "exemplars", "labels", "total")

    def __init__(self, labels: Labels, buckets: int) -> None:
        self.labels = labels
        self.counts = [0] * buckets
        self.total = 0.0
        self.exemplars: list[Exemplar | None] = [None] * buckets

    def frozen(self) -> Distribution:
        return Distribution(self.labels, tuple(self.counts), self.total, tuple(self.exemplars))


class Histograms:
    """One metric; observed by one thread at a time, read by any.

    Who reads while another observes may see an observation counted that is not in the sum yet.
    """

    def __init__(self, metric: Metric, names: Sequence[str], most: int) -> None:
        """Keep a distribution for each set of values of these labels.

        Args:
            metric: a histogram of the contract, or one of ours.
            names: of the labels.
            most: series at most, the one for all that is over included.
        """
        self.metric = metric
        self._names = tuple(names)
        self._most = most
        self._boundaries = metric.boundaries
        self._by_values: dict[tuple[str, ...], _Series] = {}  # as they come: no work to find them
        self._by_labels: dict[Labels, _Series] = {}

    def observe(
        self, values: tuple[str, ...], value: float, exemplar: Exemplar | None = None
    ) -> None:
        """Count a value under the values of the labels; an empty one is as good as none."""
        series = self._by_values.get(values) or self._find(values)
        place = bisect_left(self._boundaries, value)
        series.total += value
        series.counts[place] += 1
        if exemplar is not None:
            series.exemplars[place] = exemplar

    def family(self, start_ns: int) -> Family:
        """All series by now, in the order of their first appearance."""
        series = list(self._by_labels.values())  # at once: another thread may be observing
        return Family(self.metric, start_ns, tuple(one.frozen() for one in series))

    def _find(self, values: tuple[str, ...]) -> _Series:
        """The series of values that were not seen before, or not like this: texts are cut."""
        labels = labelled(zip(self._names, values, strict=True))
        series = self._by_labels.get(labels)
        if series is None and _apart(self._by_labels) >= self._most - 1:
            labels = OVERFLOW
            series = self._by_labels.get(labels)
        if series is None:
            series = self._by_labels[labels] = _Series(labels, len(self._boundaries) + 1)
        if labels is not OVERFLOW and len(self._by_values) < self._most:
            self._by_values[values] = series
        return series


def labelled(pairs: Iterable[tuple[str, str]]) -> Labels:
    """Labels with values that every backend keeps: cut, and no empty ones."""
    return tuple((name, _kept(value)) for name, value in pairs if value)


def _kept(value: str) -> str:
    """Half a surrogate is no text in any encoding; it can come from JSON."""
    return cut(value.encode(errors="replace").decode())


def merged(of_workers: Iterable[Iterable[Family]], most: int) -> list[Family]:
    """The counters and histograms of several workers as those of one.

    Args:
        of_workers: families of each worker; gauges are not among them.
        most: series of a metric at most, as for one worker.
    """
    alike: dict[str, list[Family]] = {}
    for families in of_workers:
        for family in families:
            alike.setdefault(family.metric.name, []).append(family)
    return [_merged(families, most) for families in alike.values()]


def _merged(families: Sequence[Family], most: int) -> Family:
    sums: dict[Labels, Number | Distribution] = {}
    for family in families:
        for point in family.points:
            labels = point.labels
            if labels not in sums and _apart(sums) >= most - 1:
                labels = OVERFLOW
            known = sums.get(labels)
            sums[labels] = replace(point, labels=labels) if known is None else _sum(known, point)
    start_ns = min(family.start_ns for family in families)
    return Family(families[0].metric, start_ns, tuple(sums.values()))


def _sum(one: Number | Distribution, other: Number | Distribution) -> Number | Distribution:
    if isinstance(one, Number) and isinstance(other, Number):
        return Number(one.labels, one.value + other.value, _later(one.exemplar, other.exemplar))
    if isinstance(one, Distribution) and isinstance(other, Distribution):
        counts = tuple(map(add, one.counts, other.counts))
        exemplars = tuple(map(_later, one.exemplars, other.exemplars))
        return Distribution(one.labels, counts, one.total + other.total, exemplars)
    raise TypeError("a number and a distribution are of two metrics")


def _later(one: Exemplar | None, other: Exemplar | None) -> Exemplar | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda exemplar: exemplar.at_ns)


def _apart(series: Mapping[Labels, object]) -> int:
    """How many series there are beside the one for what is over."""
    return len(series) - (OVERFLOW in series)
