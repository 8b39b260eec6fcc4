"""What a benchmark reports: tables for people, and one line per goal that a program can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

Cell = str | float | int


@dataclass(frozen=True, slots=True)
class Goal:
    """A measured value and its bound.

    Attributes:
        name: what was measured.
        value: the median.
        limit: the bound; a value that equals it is met.
        unit: written behind both, without a space.
        at_least: True where more is better.
    """

    name: str
    value: float
    limit: float
    unit: str
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the value is within the bound."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        verdict = "met" if self.is_met else "short"
        value, limit = _short(self.value) + self.unit, _plain(self.limit) + self.unit
        return f"goal {self.name} {value} {limit} {verdict}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below a heading."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __str__(self) -> str:
        lines = [list(self.columns), *([_cell(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))]
        return "\n".join([self.heading, *(_aligned(line, widths) for line in lines)])


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one benchmark."""

    bench: str
    tables: Sequence[Table]
    goals: Sequence[Goal]
    notes: Sequence[str] = field(default=())

    def __str__(self) -> str:
        parts = [*map(str, self.tables), "\n".join(self.notes), "\n".join(map(str, self.goals))]
        return "\n\n".join(part for part in parts if part)

    def as_json(self) -> dict[str, object]:
        """The same as plain values."""
        return {
            "bench": self.bench,
            "tables": [asdict(table) for table in self.tables],
            "notes": list(self.notes),
            "goals": [{**asdict(goal), "met": goal.is_met} for goal in self.goals],
        }


def _plain(limit: float) -> str:
    return f"{limit:.0f}" if limit == round(limit) else f"{limit:g}"


def _short(value: float) -> str:
    """Three digits at least, and all of those before the point."""
    for digits, bound in ((0, 1_000), (1, 10), (2, 1)):
        if abs(value) >= bound:
            return f"{value:.{digits}f}"
    return f"{value:.3f}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, float):
        return _short(cell)
    return f"{cell:,}" if isinstance(cell, int) else cell


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    """The first column to the left, numbers to the right."""
    first = line[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
    return "  " + "  ".join([first, *rest]).rstrip()
