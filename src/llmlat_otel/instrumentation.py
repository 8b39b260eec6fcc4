"""Every library that is supported, timed or not."""

from __future__ import annotations

from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import httpx, openai

__all__ = ["instrument", "uninstrument"]

_instrumentor = Instrumentor((*httpx.TARGETS, *openai.TARGETS))


def instrument() -> None:
    """Time the supported libraries from now on, whether they are imported yet or not.

    `llmlat_otel.auto` does this and also exports; here spans go to the provider that the
    application sets, and nowhere without one.
    """
    _instrumentor.instrument()


def uninstrument() -> None:
    """Put the libraries back as they were; streams under way are still timed to their end."""
    _instrumentor.uninstrument()
