"""Lifespans: a served application ends before its process does, and mostly in its stead.

    server   startup ·· requests ·· shutdown ─┬─ the signal that it was sent, once more: the end
                                              └ what we have to do

uvicorn raises that signal from within its event loop: after it nothing runs, `atexit` neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from llmlat_otel.core.guard import guarded

T = TypeVar("T")

TARGET: Final = "lifespan"

_works: list[Callable[[], object]] = []


def when_over(work: Callable[[], object]) -> None:
    """Have something done whenever an application of this process has ended.

    Its event loop waits meanwhile, since a server that is no longer held up is gone: it has to be
    short, however it goes.
    """
    _works.append(work)


class Lifespan:
    """An application's whole run; its messages are not looked at.

    Args:
        scope: Of the lifespan.
        receive: The server's.
        send: The server's.
    """

    __slots__ = ("_receive", "_scope", "_send")

    def __init__(self, scope: object, receive: object, send: object) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send

    async def run(self, app: Callable[..., Awaitable[T]]) -> T:
        """Have the application run."""
        try:
            return await app(self._scope, self._receive, self._send)
        finally:
            for work in tuple(_works):
                guarded(TARGET, work)
