"""What is wrong with a config file: every problem of it at once, each with its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Keys = tuple[str | int, ...]
"""Keys that lead to a value, from the top of the file."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong, or that somebody should know.

    Attributes:
        line: where in the file, from 1; 0 means the file as a whole.
        key: the keys that lead to it, with dots; empty for the file as a whole.
        words: what it is, and what to do.
    """

    line: int
    key: str
    words: str

    def __str__(self) -> str:
        return f"{self.key}: {self.words}" if self.key else self.words

    def placed(self, name: str) -> str:
        """`FILE:LINE: key.path: what; what to do`, for a file of that name."""
        return f"{name}:{self.line}: {self}" if self.line else f"{name}: {self}"


class ConfigError(ValueError):
    """A config file that cannot be used; says all that is wrong with it, a line each."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        """Gather the problems.

        Args:
            name: the file, as it was given.
            problems: at least one.
        """
        self.name = name
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(problem.placed(name) for problem in self.problems))


def dotted(path: Keys) -> str:
    """The keys of a path as they are written in words."""
    return ".".join(map(str, path))
