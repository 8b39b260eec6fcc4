"""How often something was found: one row of a table of findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from llmlat_semconv.values import FindingKind


class FindingCount(NamedTuple):
    """Findings of one kind between two services.

    Attributes:
        kind: of the findings.
        caller: service of the caller; empty where there is none.
        callee: service of the span that the findings are about.
        total: how many.
    """

    kind: FindingKind
    caller: str
    callee: str
    total: int


def in_order(rows: Iterable[FindingCount]) -> list[FindingCount]:
    """Kind by kind, the greatest first."""
    order = {kind: place for place, kind in enumerate(FindingKind)}
    return sorted(rows, key=lambda row: (order[row.kind], -row.total, row[1:3]))
