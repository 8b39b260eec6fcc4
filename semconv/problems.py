"""A problem of the contract, said so that the reader knows where, what and what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with the contract.

    Attributes:
        file: The file to edit, relative to the folder of the contract.
        name: The attribute, phase, span, event or metric that it is about.
        what: What is wrong.
        remedy: What to do about it.
    """

    file: str
    name: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.name}: {self.what}. {self.remedy}"


class UnreadableContractError(Exception):
    """The contract cannot be judged at all: a file is missing or is not YAML."""
