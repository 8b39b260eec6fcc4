"""The case format: JSON files that state spans and what must be said about them.

A case is small enough to write by hand: spans with ids of one letter, stamps that start at 0, one
unit for the file, and only the keys that matter. tests/cases/README.md lists them all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from llmlat_processor.model import Assumptions
from tests.cases.case_rows import rows_of_milestones, rows_of_pairs

Json = Mapping[str, Any]

UNITS_NS: Final[Mapping[str, int]] = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

# Relative stamps are counted from here; a plausible wall time, so that none is taken for garbage.
EPOCH_NS: Final = 1_750_000_000 * 1_000_000_000

EXACT: Final = Assumptions(tail_ns=0, resolution_ns=0, drift_ppm=0)
"""What cases take for granted unless they say otherwise: no tolerance at all."""


@dataclass(frozen=True, slots=True)
class Case:
    """One file.

    Attributes:
        name: also the id of its test.
        family: says what kind of statement `expected` is, and whose.
        unit: of every stamp and amount in the file.
        spans: as written, then those that stand for what the file states as pairs and milestones.
        expected: as written.
        links: explicit dependencies between spans.
        absolute: True where stamps are counted from 1970 instead of from the trace's start.
    """

    name: str
    family: str
    unit: str
    spans: Sequence[Json]
    expected: Json = field(default_factory=dict)
    links: Sequence[Json] = ()
    absolute: bool = False

    @property
    def unit_ns(self) -> int:
        """Nanoseconds per unit of the file."""
        return UNITS_NS[self.unit]

    @property
    def epoch_ns(self) -> int:
        """What the file's 0 is on the clock."""
        return 0 if self.absolute else EPOCH_NS

    def duration_ns(self, amount: float) -> int:
        """An amount of the file in nanoseconds, rounded to the nearest."""
        return round(amount * self.unit_ns)

    def instant_ns(self, stamp: float) -> int:
        """A stamp of the file as nanoseconds since 1970."""
        return self.epoch_ns + self.duration_ns(stamp)

    def amount(self, duration_ns: int) -> str:
        """A duration as the file would write it: exact, in the file's unit."""
        value = Decimal(duration_ns) / self.unit_ns
        return format(value.normalize(), "f")

    def written(self, amount: float) -> str:
        """An amount of the file, written as `amount` would."""
        return self.amount(self.duration_ns(amount))

    def stamp(self, instant_ns: int) -> str:
        """An instant as the file would write it."""
        return self.amount(instant_ns - self.epoch_ns)


def read_case(path: Path) -> Case:
    """Reads one case file.

    Raises:
        ValueError: if the file isn't a case; the message names the file and the key.
    """
    try:
        return _case(json.loads(path.read_text(encoding="utf-8")))
    except KeyError as missing:
        raise ValueError(f"{path}: no key {missing}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _case(raw: Json) -> Case:
    refuse_unknown("the file", raw, _TOP_LEVEL)
    case = Case(
        name=raw["name"],
        family=raw["family"],
        unit=raw["unit"],
        spans=raw["spans"],
        expected=raw["expected"],
        links=raw.get("links", ()),
        absolute=raw.get("absolute", False),
    )
    milestones = rows_of_milestones(case.spans, case.unit_ns, case.epoch_ns)
    return replace(case, spans=[*case.spans, *rows_of_pairs(raw.get("pairs", ())), *milestones])


def refuse_unknown(what: str, raw: Json, known: Set[str]) -> None:
    """Raises ValueError for keys that nobody would read."""
    if unknown := sorted(raw.keys() - known):
        raise ValueError(f"{what} has unknown keys {unknown}")


_TOP_LEVEL: Final = {
    *("name", "source", "family", "unit", "absolute", "note", "why"),
    *("spans", "links", "pairs", "expected"),
}
