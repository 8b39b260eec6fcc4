"""What a rule says when it is broken: where, what, why it matters and how to mend it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One broken rule at one place.

    Args:
        path: File (or folder, where the whole folder is at fault), relative to the tree's root.
        line: Line in the file, from 1; 0 where no single line is at fault.
        what: What is there.
        why: Why the rule exists.
        fix: What to do about it.
    """

    path: str
    line: int
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        """Three lines: `file:line: what`, why, how to fix it."""
        return f"{self.path}:{self.line}: {self.what}\n    why: {self.why}\n    fix: {self.fix}"
