"""Marks in what is sent, such as `~17:asked~`, by which the wire tells what it holds."""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(rb"~(\d+):(\w+)~")

ASKED: Final = "asked"
"""In the last bytes of a request."""

FIRST: Final = "first"
"""In the first piece of an answer's content."""

LAST: Final = "last"
"""In the last piece of an answer's content."""

OUTPUT: Final = "output"
"""The engine has its last token. This and the next two are moments at which nothing is sent."""

ARRIVED: Final = "arrived"
"""A request came to an application."""

ENDED: Final = "ended"
"""An application had done with a request."""


def mark(request: int, what: str) -> str:
    """The mark of one moment of one request."""
    return f"~{request}:{what}~"


def marks_in(content: bytes) -> list[tuple[int, str]]:
    """The marks in some bytes, each as (request, what)."""
    return [(int(request), what.decode()) for request, what in _MARK.findall(content)]


def request_in(text: str) -> int:
    """The request whose mark is in a text.

    Raises:
        ValueError: no mark is.
    """
    for request, _ in marks_in(text.encode()):
        return request
    raise ValueError(f"no mark in {text[:80]!r}")
