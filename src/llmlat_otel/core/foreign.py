"""Other instrumentations: what their spans are, and when they want nothing to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry import context as contexts
from opentelemetry.trace import TracerProvider

from llmlat_semconv import attributes as names
from llmlat_semconv.values import OperationName

_EMBEDDINGS: Final[Mapping[str, frozenset[str]]] = {
    names.GEN_AI_OPERATION_NAME: frozenset({OperationName.EMBEDDINGS.value}),
    names.OPENINFERENCE_SPAN_KIND: frozenset({"EMBEDDING"}),
    names.LLM_REQUEST_TYPE: frozenset({"embedding"}),
    names.LANGFUSE_OBSERVATION_TYPE: frozenset({"embedding"}),
}
_GENERATIONS: Final[Mapping[str, frozenset[str]]] = {
    names.GEN_AI_OPERATION_NAME: frozenset(
        each.value
        for each in (
            OperationName.CHAT,
            OperationName.TEXT_COMPLETION,
            OperationName.GENERATE_CONTENT,
        )
    ),
    names.OPENINFERENCE_SPAN_KIND: frozenset({"LLM"}),
    names.LLM_REQUEST_TYPE: frozenset({"chat", "completion"}),
    names.LANGFUSE_OBSERVATION_TYPE: frozenset({"generation"}),
}
"""How others say that a span is a call of a model.

OpenLLMetry's `traceloop.span.kind` is not among them: it names a part of the application.
"""

_SUPPRESSING: Final = frozenset(
    {
        contexts._SUPPRESS_INSTRUMENTATION_KEY,
        "suppress_instrumentation",
        "suppress_language_model_instrumentation",
    }
)
"""Keys of the context that ask for silence: OpenTelemetry's, its older name, and OpenLLMetry's.

`_SUPPRESS_HTTP_INSTRUMENTATION_KEY` is not among them: whoever sets it has an HTTP span of its own
and wants no second one. We make none; the phases of a call are no HTTP spans.
"""


_MIDDLEWARE: Final = "OpenTelemetryMiddleware"
"""What OpenTelemetry and Starlette call the layer of an application that makes its spans."""

_MARK: Final = "_is_instrumented_by_opentelemetry"

_LAYERS_MAX: Final = 16


def may_be_call(attributes: Mapping[str, object], operation: OperationName) -> bool:
    """Whether a span of somebody else can be the one of a call that asks for an operation.

    A span that has the account of another call already cannot.

    Args:
        attributes: Of the span.
        operation: What the call asks for.
    """
    if names.LLMLAT_CONTRACT_VERSION in attributes:
        return False
    kinds = _EMBEDDINGS if operation is OperationName.EMBEDDINGS else _GENERATIONS
    return any(attributes.get(name) in values for name, values in kinds.items())


def counts_calls(attributes: Mapping[str, object]) -> bool:
    """Whether who made a span has metrics of the call as well: those who follow OpenTelemetry."""
    return names.GEN_AI_OPERATION_NAME in attributes


def is_suppressed() -> bool:
    """Whether somebody asks for silence here and now."""
    context = contexts.get_current()
    return not _SUPPRESSING.isdisjoint(context) and any(context.get(key) for key in _SUPPRESSING)


def makes_spans(app: object, provider: Callable[[], TracerProvider | None]) -> bool:
    """Whether an ASGI application has spans of its requests made, somewhere further in.

    OpenTelemetry's instrumentation marks the application, or is one of its layers; FastAPI can do
    so itself, where somebody has set a provider.

    Args:
        app: The application, or the outermost of its layers.
        provider: Tells which one the application has set; None if it has set none.
    """
    for _ in range(_LAYERS_MAX):
        if app is None:
            return False
        if _is_middleware(type(app)) or getattr(app, _MARK, False) is True:
            return True
        layers = getattr(app, "user_middleware", None)
        if layers and _has_middleware(layers):
            return True
        itself = getattr(app, "_native_telemetry", None)
        if itself is not None and _does_so_itself(itself, provider):
            return True
        app = getattr(app, "app", None)
    return False


def _is_middleware(kind: object) -> bool:
    return getattr(kind, "__name__", None) == _MIDDLEWARE


def _has_middleware(layers: object) -> bool:
    return isinstance(layers, list) and any(
        _is_middleware(getattr(each, "cls", None)) for each in layers
    )


def _does_so_itself(telemetry: object, provider: Callable[[], TracerProvider | None]) -> bool:
    config = getattr(telemetry, "config", None)
    if not isinstance(config, dict) or not config.get("tracing"):
        return False
    return config.get("tracer_provider") is not None or provider() is not None
