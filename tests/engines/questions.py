"""What the app of these tests is told to ask."""

from __future__ import annotations

from typing import Final, NamedTuple

QUESTIONS: Final = "QUESTIONS"
"""The variable with all rounds, as JSON."""


class Question(NamedTuple):
    """One question.

    Attributes:
        name: of its agent, and so of its trace.
        words: its length; the model knows the word, which is one token.
        answer: how many tokens are to be answered.
        about: what it begins with; another beginning shares no prefix.
        priority: the greatest is the first to be evicted, and the last to be scheduled.
        is_streamed: whether the answer is.
    """

    name: str
    words: int
    answer: int
    about: str = ""
    priority: int = 0
    is_streamed: bool = True
