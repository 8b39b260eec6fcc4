"""How often something was found: one row of a table of findings."""

from __future__ import annotations

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
