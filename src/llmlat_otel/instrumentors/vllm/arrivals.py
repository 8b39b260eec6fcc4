"""Arrivals: when a request was accepted, who asks, and for what; before vLLM knows of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from llmlat_otel.core import propagation
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime
from llmlat_semconv.values import OperationName

TARGET: Final = "vllm arrival"

_ENGINE: Final = "vllm.v1.engine.output_processor"

_OPERATIONS: Final = (
    ("embed", OperationName.EMBEDDINGS),
    ("chat", OperationName.CHAT),
    ("responses", OperationName.CHAT),
    ("messages", OperationName.CHAT),
)
"""Pieces of a path, and what is asked for there; elsewhere text is completed."""


class Arrival(NamedTuple):
    """A request as it has come.

    Attributes:
        accepted_ns: When it was accepted.
        headers: Those that name its parent; None where it has come by no HTTP.
        operation: What is asked for.
        ended: Requests to the engine that have come of it and are over: the next one is another
            turn, of a server that calls tools itself.
        asked: What tells this request from the next one.
    """

    accepted_ns: int
    headers: Mapping[str, str] | None
    operation: OperationName
    ended: list[str]
    asked: object = None


arrival: ContextVar[Arrival | None] = ContextVar("llmlat-vllm-arrival", default=None)
"""The request that is being answered in this task or thread."""

_models: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def model_of(outputs: Any) -> str | None:
    """The name that callers use for the model of an engine, by its output processor."""
    return _models.get(outputs)


def answered(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `FastAPI.__call__`, which answers in the task that it is called in."""
    if _ENGINE in sys.modules and args:
        guarded(TARGET, _accept, args[0])
    return wrapped(*args, **kwargs)


def _accept(scope: Any) -> None:
    if scope["type"] != "http":
        return
    headers, known = scope["headers"], arrival.get()
    if known is not None and known.asked is headers:
        return  # An application within another one.
    path = scope["path"]
    operation = next(
        (operation for piece, operation in _OPERATIONS if piece in path),
        OperationName.TEXT_COMPLETION,
    )
    parents = propagation.named_in(headers)
    arrival.set(Arrival(runtime().clock.now_ns(), parents, operation, [], headers))


def asked(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `AsyncLLM.add_request`."""
    guarded(TARGET, _know, instance)
    return wrapped(*args, **kwargs)


def asked_here(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `LLMEngine.add_request`, which turns a prompt into tokens before it returns."""
    guarded(TARGET, _know, instance)
    before = guarded(TARGET, _accept_here)
    try:
        return wrapped(*args, **kwargs)
    finally:
        if before is not None:
            guarded(TARGET, arrival.set, before[0])


def _accept_here() -> tuple[Arrival | None]:
    before = arrival.get()
    if before is None:
        now_ns = runtime().clock.now_ns()
        arrival.set(Arrival(now_ns, None, OperationName.TEXT_COMPLETION, []))
    return (before,)


def _know(engine: Any) -> None:
    outputs = engine.output_processor
    if outputs not in _models:
        served = engine.model_config.served_model_name
        _models[outputs] = served if isinstance(served, str) else served[0]
