"""The manual API: operations and phases that the application names itself."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span

from llmlat_otel.core import propagation
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.emit import OpenSpan
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.recording import PhaseInterval
from llmlat_otel.core.runtime import runtime
from llmlat_otel.core.wrapping import run_in, stream, wrap
from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_FIRST_CONTENT
from llmlat_semconv.phases import Phase
from llmlat_semconv.spans import agent_span_name, retrieval_span_name, tool_span_name
from llmlat_semconv.values import OperationName

F = TypeVar("F", bound=Callable[..., Any])

_AGENT = contexts.create_key("llmlat-agent")
_logger = logging.getLogger("llmlat_otel")


class Timing(Protocol):
    """One run of a block or function that the application times. None of its methods raises."""

    span: Span

    def resume(self) -> None:
        """The block runs from here on."""

    def suspend(self) -> None:
        """The block has handed back control."""

    def end(self, error: BaseException | None) -> None:
        """The block is over; called once or more."""


_entered: ContextVar[tuple[tuple[Timed, Timing], ...]] = ContextVar("llmlat-blocks", default=())
"""The blocks that this thread or task has entered; some may have been left elsewhere since."""


class Timed:
    """A decorator, a context manager and an async context manager.

    As a decorator it times functions, coroutine functions and generators of both kinds; what it
    decorates still looks like itself. Entered, it gives the span, on which attributes can be set.

    Args:
        start: Begins one run, given the decorated function's name or None.
    """

    def __init__(self, start: Callable[[str | None], Timing]) -> None:
        self._start = start
        self._running: list[Timing] = []

    def __enter__(self) -> Span:
        """Begin."""
        timing = self._start(None)
        self._running.append(timing)
        _entered.set((*_still_running(), (self, timing)))
        timing.resume()
        return timing.span

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End; exceptions pass unchanged."""
        timing = self._leave()
        timing.suspend()
        timing.end(error)

    def _leave(self) -> Timing:
        """The run that this thread or task began last; any, if it was begun elsewhere."""
        ours = [timing for timed, timing in _still_running() if timed is self]
        timing = ours[-1] if ours else self._running[-1]
        self._running.remove(timing)
        _entered.set(_still_running())
        return timing

    async def __aenter__(self) -> Span:
        """Begin."""
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End; exceptions pass unchanged."""
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """Time each call of a function."""
        name = getattr(function, "__name__", None)

        def timed(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
            return run_in(_Run(self._start(name)), wrapped, args, kwargs)

        return wrap(function, timed)


def _still_running() -> tuple[tuple[Timed, Timing], ...]:
    return tuple(each for each in _entered.get() if each[1] in each[0]._running)


class _Run:
    """A decorated function's run, and each step of the generator that it returns."""

    __slots__ = ("_timing",)

    def __init__(self, timing: Timing) -> None:
        self._timing = timing

    def __enter__(self) -> None:
        self._timing.resume()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._timing.suspend()
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            self._timing.end(None)
        elif error is not None:
            self._timing.end(error)

    def restart(self) -> None:
        """An operation begins when it is asked for, not when its coroutine first runs."""

    def delivered(self, result: Any) -> Any:
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            return stream(result, self)
        if hasattr(type(result), "add_done_callback"):  # A task or future has no result yet.
            guarded("task", result.add_done_callback, lambda _: self._timing.end(None))
        else:
            self._timing.end(None)
        return result

    def received(self, event: Any) -> None:
        """What the application's generator yields is its own business."""

    def closed(self, error: BaseException | None) -> None:
        self._timing.end(error)

    def abandoned(self) -> None:
        self._timing.end(None)


class _Operation:
    """Times an operation as a span that is current while the block runs."""

    __slots__ = ("_before", "_context", "_opened", "_runtime", "span")

    def __init__(self, name: str, attributes: Mapping[str, str], *, is_agent: bool = False) -> None:
        self.span: Span = INVALID_SPAN
        self._runtime = runtime()
        self._before: Context | None = None
        self._opened = guarded(name, self._open, name, attributes)
        if self._opened is not None:
            self.span = self._opened.span
            self._context = self._opened.context
            if is_agent:
                self._context = contexts.set_value(_AGENT, _Agent(self._opened), self._context)

    def _open(self, name: str, attributes: Mapping[str, str]) -> OpenSpan:
        clock = self._runtime.clock
        return self._runtime.emitter.open_operation(
            name, attributes, clock.now_ns(), clock.anchor()
        )

    def resume(self) -> None:
        if self._opened is not None:
            self._before = propagation.enter(self._context)

    def suspend(self) -> None:
        if self._before is not None:
            propagation.leave(self._context, self._before)
            self._before = None

    def end(self, error: BaseException | None) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            guarded("manual operation", self._end, opened, error)

    def _end(self, opened: OpenSpan, error: BaseException | None) -> None:
        self._runtime.emitter.end(opened, self._runtime.clock.now_ns(), error_type(error))


class _Agent:
    """The enclosing agent, which shows its first content once."""

    __slots__ = ("has_shown", "opened")

    def __init__(self, opened: OpenSpan) -> None:
        self.opened = opened
        self.has_shown = False


class _Phase:
    """Times a phase of the span that is current where it begins."""

    __slots__ = ("_parent", "_phase", "_runtime", "_start_ns", "span")

    def __init__(self, phase: Phase) -> None:
        self._runtime = runtime()
        self._phase = phase
        self._start_ns = 0
        self._parent: OpenSpan | None = guarded("phase", self._begin)
        self.span: Span = INVALID_SPAN if self._parent is None else self._parent.span

    def _begin(self) -> OpenSpan:
        self._start_ns = self._runtime.clock.now_ns()
        return self._runtime.emitter.current(self._runtime.clock.anchor())

    def resume(self) -> None:
        """A phase is never the current span: its parent stays so."""

    def suspend(self) -> None:
        """See `resume`."""

    def end(self, error: BaseException | None) -> None:
        parent, self._parent = self._parent, None
        if parent is not None:
            guarded("phase", self._end, parent, error)

    def _end(self, parent: OpenSpan, error: BaseException | None) -> None:
        end_ns = self._runtime.clock.now_ns()
        truncated = error is not None
        interval = PhaseInterval(self._phase, self._start_ns, end_ns, 0, truncated)
        self._runtime.emitter.write_phase(parent, interval)


class _Untimed:
    """Stands where nothing can be timed."""

    span: Span = INVALID_SPAN

    def resume(self) -> None:
        """Nothing to do."""

    def suspend(self) -> None:
        """Nothing to do."""

    def end(self, error: BaseException | None) -> None:
        """Nothing to do."""


def agent(name: str | None = None) -> Timed:
    """Time an agent's run: span `invoke_agent {name}`.

    Args:
        name: The agent; by default the decorated function's name.
    """
    _refuse_bare("agent", name)

    def start(function_name: str | None) -> Timing:
        known = name or function_name or ""
        attributes = _named(OperationName.INVOKE_AGENT, names.GEN_AI_AGENT_NAME, known)
        return _Operation(agent_span_name(known), attributes, is_agent=True)

    return Timed(start)


def tool(name: str | None = None, *, call_id: str | None = None) -> Timed:
    """Time a tool's run: span `execute_tool {name}`.

    Args:
        name: The tool; by default the decorated function's name.
        call_id: The id that the model gave the call, which ties the two together.
    """
    _refuse_bare("tool", name)

    def start(function_name: str | None) -> Timing:
        known = name or function_name or ""
        attributes = _named(OperationName.EXECUTE_TOOL, names.GEN_AI_TOOL_NAME, known)
        if call_id is not None:
            attributes[names.GEN_AI_TOOL_CALL_ID] = call_id
        return _Operation(tool_span_name(known), attributes)

    return Timed(start)


def retrieval(source: str | None = None) -> Timed:
    """Time a retrieval: span `retrieval {source}`.

    Args:
        source: What is asked, such as an index; by default the decorated function's name.
    """
    _refuse_bare("retrieval", source)

    def start(function_name: str | None) -> Timing:
        known = source or function_name or ""
        attributes = _named(OperationName.RETRIEVAL, names.LLMLAT_RETRIEVAL_SOURCE, known)
        return _Operation(retrieval_span_name(known), attributes)

    return Timed(start)


def phase(name: Phase | str) -> Timed:
    """Time a phase of the current span; the contract says where each begins and ends.

    Args:
        name: A phase of the contract. Any other is noted in the log and not timed.
    """
    _refuse_bare("phase", name)
    try:
        known = Phase(name)
    except ValueError:
        _logger.warning("%r is no phase of the contract and is not timed", name)
        return Timed(lambda _: _Untimed())
    return Timed(lambda _: _Phase(known))


def first_content() -> None:
    """The end user sees the first useful content now.

    Marks the enclosing agent's span, else the current one; of several calls within one agent the
    first counts.
    """
    guarded("first content", _mark_first_content)


def _mark_first_content() -> None:
    sdk = runtime()
    enclosing = contexts.get_value(_AGENT)
    if not isinstance(enclosing, _Agent):
        enclosing = _Agent(sdk.emitter.current(sdk.clock.anchor()))
    if not enclosing.has_shown:
        enclosing.has_shown = True
        sdk.emitter.add_event(enclosing.opened, LLMLAT_FIRST_CONTENT, sdk.clock.now_ns())


def _refuse_bare(decorator: str, name: object) -> None:
    """Without its parentheses a decorator is given the function in the place of a name."""
    if callable(name):
        raise TypeError(f"@{decorator} takes parentheses: write @{decorator}(...)")


def _named(operation: OperationName, attribute: str, name: str) -> dict[str, str]:
    attributes = {names.GEN_AI_OPERATION_NAME: operation.value}
    if name:
        attributes[attribute] = name
    return attributes
