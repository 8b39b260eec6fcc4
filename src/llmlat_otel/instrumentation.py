"""Every library that is supported, timed or not."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Instrumentor, TargetState
from llmlat_otel.instrumentors import aiohttp, asgi, httpx, openai, threads
from llmlat_otel.settings import disabled_instrumentors

__all__ = ["INSTRUMENTORS", "InstrumentorState", "instrument", "refused", "states", "uninstrument"]

INSTRUMENTORS: Final[Mapping[str, Instrumentor]] = {
    "aiohttp": Instrumentor(aiohttp.TARGETS),
    "asgi": Instrumentor(asgi.TARGETS),
    "httpx": Instrumentor(httpx.TARGETS),
    "openai": Instrumentor(openai.TARGETS),
    "threads": Instrumentor(threads.TARGETS),
}
"""By the names that `LLMLAT_DISABLED` takes."""

_logger = logging.getLogger("llmlat_otel")
_disabled: set[str] = set()
_refused: dict[str, None] = {}


class InstrumentorState(NamedTuple):
    """What has become of an instrumentor.

    Attributes:
        name: Of the instrumentor.
        is_disabled: Whether the environment has switched it off.
        targets: What has become of each of its targets.
    """

    name: str
    is_disabled: bool
    targets: tuple[TargetState, ...]


def instrument() -> None:
    """Time the supported libraries from now on, whether they are imported yet or not.

    `llmlat_otel.auto` does this and also exports; here spans go to the provider that the
    application sets, and nowhere without one. `LLMLAT_DISABLED` names what is left alone.
    """
    guarded("instrument", _instrument)


def uninstrument() -> None:
    """Put the libraries back as they were; streams under way are still timed to their end."""
    for name, instrumentor in INSTRUMENTORS.items():
        guarded(name, instrumentor.uninstrument)


def states() -> Iterator[InstrumentorState]:
    """What has become of each instrumentor."""
    for name, instrumentor in INSTRUMENTORS.items():
        targets = guarded(name, tuple, instrumentor.states()) or ()
        yield InstrumentorState(name, name in _disabled, targets)


def refused() -> tuple[str, ...]:
    """What the environment says of instrumentors and cannot be used, as it was warned of."""
    return tuple(_refused)


def _instrument() -> None:
    disabled, unknown = disabled_instrumentors(os.environ, INSTRUMENTORS)
    for each in unknown:
        if each not in _refused:
            _refused[each] = None
            _logger.warning("%s", each)
    _disabled.clear()
    _disabled.update(disabled)
    for name, instrumentor in INSTRUMENTORS.items():
        if name not in disabled:
            guarded(name, instrumentor.instrument)
