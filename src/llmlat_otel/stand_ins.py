"""What the package offers where its own cannot be imported: the same names, and they do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = [
    "agent",
    "carry",
    "first_content",
    "flush",
    "flush_async",
    "instrument",
    "phase",
    "retrieval",
    "shutdown",
    "shutdown_async",
    "tool",
    "uninstrument",
]

F = TypeVar("F", bound=Callable[..., object])


class _NoSpan:
    """Stands for the span on which attributes would be set."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _nothing


class _Untimed:
    """A decorator that returns the function itself; a context manager of both kinds."""

    def __enter__(self) -> _NoSpan:
        return _NoSpan()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Nothing to do."""

    async def __aenter__(self) -> _NoSpan:
        return _NoSpan()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Nothing to do."""

    def __call__(self, function: F) -> F:
        return function


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def carry(function: F) -> F:
    """There is no span to carry."""
    return function


def _untimed(name: Any = None, **_: object) -> Any:
    """Time nothing."""
    return name if callable(name) else _Untimed()


def _done(*_: object, **__: object) -> bool:
    """There is nothing to send."""
    return True


async def _done_async(*_: object, **__: object) -> bool:
    """There is nothing to send."""
    return True


agent = phase = retrieval = tool = _untimed
first_content = instrument = uninstrument = _nothing
flush = shutdown = _done
flush_async = shutdown_async = _done_async
