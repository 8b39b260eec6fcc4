"""One thing that a case file says, as lines that must be found in the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.cases.case_format import Case
from tests.cases.outcome import Outcome

Lines = list[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a file says.

    Attributes:
        about: what it is about.
        said: the lines that must be found.
        found: reads the same lines off an outcome.
    """

    about: str
    said: Lines
    found: Callable[[Outcome], Lines]


Reader = Callable[[Case, Any, "str | None"], Iterator[Claim]]
"""Reads the value of one key; the last argument names the root where a file has several."""
