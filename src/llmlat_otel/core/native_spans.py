"""Spans that a library makes of its own work: the next one is told of as it begins."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from weakref import WeakSet

from opentelemetry.trace import Span, TracerProvider

from llmlat_otel.core.guard import guarded

Work = Callable[[Span], None]

Awaited = tuple[str, Work] | None
"""The name of a span, and what is done with it; None while none is awaited."""

TARGET = "native span"

_awaited: ContextVar[Awaited] = ContextVar("llmlat-native-span", default=None)
_watched: WeakSet[TracerProvider] = WeakSet()


class _Watcher:
    """A span processor, as the OpenTelemetry SDK calls it."""

    def on_start(self, span: Span, parent_context: object = None) -> None:  # noqa: ARG002
        """A span begins; it can still be written to."""
        guarded(TARGET, _begun, span)

    def on_end(self, span: object) -> None:
        """Nothing to do."""

    def _on_ending(self, span: object) -> None:
        """Nothing to do: newer SDKs call it."""

    def shutdown(self) -> None:
        """Nothing to do."""

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002
        """Nothing to do."""
        return True


def await_next(provider: TracerProvider | None, name: str, work: Work) -> tuple[Awaited]:
    """Have work done with the next span of a name that is started in this context.

    Args:
        provider: Where it is started; one that takes no span processors tells of none.
        name: Of the span.
        work: Is called with it as it begins, under the guard.

    Returns:
        What was awaited before, for `restore`.
    """
    _watch(provider)
    before = _awaited.get()
    _awaited.set((name, work))
    return (before,)


def restore(before: tuple[Awaited]) -> None:
    """Await what was awaited before `await_next`, and no longer what has not come since."""
    _awaited.set(before[0])


def _begun(span: Span) -> None:
    awaited = _awaited.get()
    if awaited is not None and getattr(span, "name", None) == awaited[0]:
        _awaited.set(None)  # What is made meanwhile is ours.
        awaited[1](span)


def _watch(provider: TracerProvider | None) -> None:
    add = getattr(provider, "add_span_processor", None)
    if add is not None and provider is not None and provider not in _watched:
        _watched.add(provider)
        add(_Watcher())
