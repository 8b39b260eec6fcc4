"""Instrumentations of openai's client, each put in and taken out at will, in one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple

import wrapt
from openinference.instrumentation import TraceConfig
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.trace import TracerProvider

import llmlat_otel

_INSTRUMENTOR: Final = "OpenAIInstrumentor"
_WRAPPED: Final = ("openai", "httpx2")


class Instrumentation(NamedTuple):
    """Something that times a library.

    Attributes:
        put_in: has the library's calls timed.
        take_out: puts the library back.
    """

    put_in: Callable[[], None]
    take_out: Callable[[], None]


OURS: Final = Instrumentation(llmlat_otel.instrument, llmlat_otel.uninstrument)


class _Peer(NamedTuple):
    """An instrumentation of somebody else.

    Attributes:
        distribution: what it comes in.
        module: where its instrumentor is, which they all call the same.
        options: for `instrument`, so that it captures no content.
        has_metrics: whether it records any.
    """

    distribution: str
    module: str
    options: Mapping[str, object]
    has_metrics: bool

    @property
    def lines(self) -> str:
        """What a program has to say to be instrumented by it."""
        return f"from {self.module} import {_INSTRUMENTOR}; {_INSTRUMENTOR}().instrument()"

    def instrumentor(self) -> Any:
        """There is one of each."""
        return getattr(import_module(self.module), _INSTRUMENTOR)()


PEERS: Final[Mapping[str, _Peer]] = {
    "otel genai-openai": _Peer(
        "opentelemetry-instrumentation-genai-openai",
        "opentelemetry.instrumentation.genai.openai",
        {},
        True,
    ),
    "OpenInference": _Peer(
        "openinference-instrumentation-openai",
        "openinference.instrumentation.openai",
        {"config": TraceConfig(hide_inputs=True, hide_outputs=True)},
        False,
    ),
    "OpenLLMetry": _Peer(
        "opentelemetry-instrumentation-openai", "opentelemetry.instrumentation.openai", {}, True
    ),
}

_OPENLLMETRY_CONTENT: Final = "TRACELOOP_TRACE_CONTENT"


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A method that somebody has put another one in the place of."""

    owner: type
    name: str
    original: object
    replacement: object


def peer(
    name: str, tracers: TracerProvider, meters: MeterProvider | None = None
) -> Instrumentation:
    """An instrumentation of somebody else, ready to be put in.

    Its own way out is not taken: OpenLLMetry's leaves its wrappers where they are. What it has
    wrapped is found, and put in and taken out one by one.

    Args:
        name: one of PEERS.
        tracers: makes its spans.
        meters: makes its metrics; none are recorded without.
    """
    os.environ[_OPENLLMETRY_CONTENT] = "false"
    chosen = PEERS[name]
    instrumentor = chosen.instrumentor()
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()  # There is one of it, which remembers that it was in before.
    instrumentor.instrument(
        tracer_provider=tracers, meter_provider=meters or NoOpMeterProvider(), **chosen.options
    )
    replaced = list(_replaced())

    def put_in() -> None:
        for each in replaced:
            setattr(each.owner, each.name, each.replacement)

    def take_out() -> None:
        for each in replaced:
            setattr(each.owner, each.name, each.original)

    take_out()
    return Instrumentation(put_in, take_out)


def _replaced() -> Iterator[_Replaced]:
    """Methods of the libraries that are wrapped now."""
    for owner in _classes():
        for name, value in list(vars(owner).items()):
            if isinstance(value, wrapt.FunctionWrapper):
                yield _Replaced(owner, name, value.__wrapped__, value)


def _classes() -> set[type]:
    modules = [
        module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _WRAPPED
    ]
    return {value for module in modules for value in vars(module).values() if type(value) is type}
