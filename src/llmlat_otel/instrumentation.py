"""Every library that is supported, timed or not."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Instrumentor, TargetState
from llmlat_otel.instrumentors import (
    aiohttp,
    asgi,
    httpx,
    ollama,
    openai,
    threads,
    transformers,
    vllm,
)
from llmlat_otel.settings import disabled_instrumentors

__all__ = ["INSTRUMENTORS", "InstrumentorState", "instrument", "refused", "states", "uninstrument"]

INSTRUMENTORS: Final[Mapping[str, Instrumentor]] = {
    "aiohttp": Instrumentor(aiohttp.TARGETS),
    "asgi": Instrumentor(asgi.TARGETS),
    "httpx": Instrumentor(httpx.TARGETS),
    "ollama": Instrumentor(ollama.TARGETS),
    "openai": Instrumentor(openai.TARGETS),
    "threads": Instrumentor(threads.TARGETS),
    "transformers": Instrumentor(transformers.TARGETS),
    "vllm": Instrumentor(vllm.TARGETS),
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


def instrument(*only: str) -> None:
    """Time the supported libraries from now on, whether they are imported yet or not.

    `llmlat_otel.auto` does this and also exports; here spans go to the provider that the
    application sets, and nowhere without one. `LLMLAT_DISABLED` names what is left alone.

    Args:
        only: Names of libraries, as `LLMLAT_DISABLED` takes them; all without any.
    """
    guarded("instrument", _instrument, only or tuple(INSTRUMENTORS))


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


def _instrument(wanted: Collection[str]) -> None:
    disabled, unknown = disabled_instrumentors(os.environ, INSTRUMENTORS)
    for each in unknown:
        if each not in _refused:
            _refused[each] = None
            _logger.warning("%s", each)
    _disabled.clear()
    _disabled.update(disabled)
    for name, instrumentor in INSTRUMENTORS.items():
        if name in wanted and name not in disabled:
            guarded(name, instrumentor.instrument)
