"""How many operations told latencies that nobody knows how to read, by who sent them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from llmlat_processor.metrics.series import labelled
from llmlat_processor.model.families import OVERFLOW, Family, Labels, Number
from llmlat_semconv.metrics import Metric

UNREAD: Final = Metric(
    "llmlat_processor_unread_spans",
    "{span}",
    "Spans with latencies by a producer that is not known, or of another contract, by scope.",
    (),
    "counter",
)


class Unread:
    """Counters by instrumentation scope; one thread counts, any may read."""

    def __init__(self, most: int) -> None:
        """Keep at most so many of them apart, the one for what is over included."""
        self._most = most
        self._counts: Counter[Labels] = Counter()

    def observe(self, counts: Mapping[str, int]) -> None:
        """Count the spans of a trace, by scope."""
        for scope, count in counts.items():
            labels = labelled([("scope", scope)])
            if labels not in self._counts and len(self._counts) >= self._most - 1:
                labels = OVERFLOW
            self._counts[labels] += count

    def family(self, start_ns: int) -> Family:
        """All of them by now."""
        counts = list(self._counts.items())  # at once: another thread may be counting
        points = tuple(Number(labels, count) for labels, count in counts)
        return Family(UNREAD, start_ns, points)
