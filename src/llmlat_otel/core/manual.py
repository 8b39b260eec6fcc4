"""The manual API: operations and phases that the application names itself."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from contextvars import ContextVar
from types import CoroutineType
from typing import Any, Final, TypeVar

from opentelemetry.trace import INVALID_SPAN, Span

from llmlat_otel.core.attributes import text
from llmlat_otel.core.drops import when_dropped
from llmlat_otel.core.guard import guarded, replaced
from llmlat_otel.core.operations import (
    TARGET,
    Operation,
    TimedPhase,
    Timing,
    Untimed,
    mark_first_content,
)
from llmlat_otel.core.streams import stream
from llmlat_otel.core.wrapping import run_in, wrap
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.spans import agent_span_name, retrieval_span_name, tool_span_name
from llmlat_semconv.values import OperationName

F = TypeVar("F", bound=Callable[..., Any])

_UNTIMED: Final = Untimed()

_logger = logging.getLogger("llmlat_otel")

_entered: ContextVar[tuple[tuple[Timed, Timing], ...]] = ContextVar("llmlat-blocks", default=())
"""The blocks that this thread or task has entered; some may have been left elsewhere since."""


class Timed:
    """A decorator, a context manager and an async context manager.

    As a decorator it times functions, coroutine functions and generators of both kinds; what it
    decorates still looks like itself. Entered, it gives the span, on which attributes can be set.

    What a function returns is timed on if it is a coroutine, a generator, a task or a future; of
    anything else only the making is timed. `contextlib.contextmanager` goes above this decorator,
    not below it.

    Args:
        start: Begins one run, given the decorated function's name or None.
    """

    def __init__(self, start: Callable[[str | None], Timing]) -> None:
        self._start = start
        self._running: list[Timing] = []

    def __enter__(self) -> Span:
        """Begin."""
        return guarded(TARGET, self._enter) or INVALID_SPAN

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End; exceptions pass unchanged."""
        guarded(TARGET, self._leave, error)

    async def __aenter__(self) -> Span:
        """Begin."""
        return guarded(TARGET, self._enter) or INVALID_SPAN

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End; exceptions pass unchanged."""
        guarded(TARGET, self._leave, error)

    def _enter(self) -> Span:
        timing = guarded(TARGET, self._start, None) or _UNTIMED
        self._running.append(timing)  # Whatever fails now, there is a run to leave.
        try:
            _entered.set((*_still_running(), (self, timing)))
        finally:
            timing.resume()
        return timing.span

    def _leave(self, error: BaseException | None) -> None:
        timing = self._left()
        try:
            timing.suspend()
        finally:
            timing.end(error)

    def _left(self) -> Timing:
        """The run that this thread or task began last; any, if it was begun elsewhere."""
        running = guarded(TARGET, _still_running) or ()
        ours = [timing for timed, timing in running if timed is self]
        timing = ours[-1] if ours else self._running[-1]
        self._running.remove(timing)
        guarded(TARGET, _forget_left)
        return timing

    def __call__(self, function: F) -> F:
        """Time each call of a function."""
        name = getattr(function, "__name__", None)

        def timed(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
            run = guarded(TARGET, self._run, name)
            result = run_in(run, wrapped, args, kwargs)
            if run is not None and type(result) is CoroutineType:
                guarded(TARGET, run.may_never_run, result)
            return result

        return replaced(TARGET, function, wrap, timed)

    def _run(self, name: str | None) -> _Run:
        run = _Run()
        run.timing = self._start(name)
        return run


def _still_running() -> tuple[tuple[Timed, Timing], ...]:
    return tuple(each for each in _entered.get() if each[1] in each[0]._running)


def _forget_left() -> None:
    _entered.set(_still_running())


class _Run:
    """A decorated function's run, and each step of the generator that it returns."""

    __slots__ = ("_forget", "timing")
    target = TARGET

    def __init__(self) -> None:
        self.timing: Timing = _UNTIMED
        self._forget: Callable[[], None] | None = None

    def begin(self) -> None:
        self.timing.resume()

    def returned(self) -> None:
        self.timing.suspend()

    def failed(self, error: BaseException) -> None:
        self._end(error)

    def may_never_run(self, coroutine: object) -> None:
        """A coroutine may be dropped, or closed, before its first step."""
        self._forget = when_dropped(coroutine, self.timing.forgo)

    def restart(self) -> None:
        """An operation begins when it is asked for, not when its coroutine first runs."""
        if self._forget is not None:
            self._forget()

    def delivered(self, result: Any) -> Any:
        try:
            return self._followed(result)
        except BaseException:
            self.timing.end(None)  # It is handed over as it is: nobody will tell of its end.
            raise

    def _followed(self, result: Any) -> Any:
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            measured = stream(result, self)
            self._forget = when_dropped(measured, self.completed)
            return measured
        if hasattr(type(result), "add_done_callback"):  # A task or future has no result yet.
            result.add_done_callback(self._done)
        else:
            self.timing.end(None)
        return result

    def _done(self, result: object) -> None:
        guarded(TARGET, self.timing.end, None, result)

    def received(self, _: Any, /) -> None:
        """What the application's generator yields is its own business."""
        self.timing.suspend()

    def completed(self) -> None:
        self._end(None)

    def closed(self, error: BaseException | None) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if self._forget is not None:
            self._forget()
        try:
            self.timing.suspend()
        finally:
            self.timing.end(error)


def agent(name: str | None = None) -> Timed:
    """Time an agent's run: span `invoke_agent {name}`.

    Args:
        name: The agent; by default the decorated function's name.
    """
    if callable(name):
        raise _bare("agent")

    def start(function_name: str | None) -> Timing:
        known = text(name) or text(function_name) or ""
        attributes = _named(OperationName.INVOKE_AGENT, names.GEN_AI_AGENT_NAME, known)
        return Operation(agent_span_name(known), attributes, is_agent=True)

    return Timed(start)


def tool(name: str | None = None, *, call_id: str | None = None) -> Timed:
    """Time a tool's run: span `execute_tool {name}`.

    Args:
        name: The tool; by default the decorated function's name.
        call_id: The id that the model gave the call, which ties the two together.
    """
    if callable(name):
        raise _bare("tool")

    def start(function_name: str | None) -> Timing:
        known = text(name) or text(function_name) or ""
        attributes = _named(OperationName.EXECUTE_TOOL, names.GEN_AI_TOOL_NAME, known)
        if call_id is not None:
            attributes[names.GEN_AI_TOOL_CALL_ID] = call_id
        return Operation(tool_span_name(known), attributes)

    return Timed(start)


def retrieval(source: str | None = None) -> Timed:
    """Time a retrieval: span `retrieval {source}`.

    Args:
        source: What is asked, such as an index; by default the decorated function's name.
    """
    if callable(source):
        raise _bare("retrieval")

    def start(function_name: str | None) -> Timing:
        known = text(source) or text(function_name) or ""
        attributes = _named(OperationName.RETRIEVAL, names.LLMLAT_RETRIEVAL_SOURCE, known)
        return Operation(retrieval_span_name(known), attributes)

    return Timed(start)


def phase(name: Phase | str) -> Timed:
    """Time a phase of the current span; the contract says where each begins and ends.

    Args:
        name: A phase of the contract. Any other is noted in the log and not timed.
    """
    if callable(name):
        raise _bare("phase")
    known = guarded(TARGET, _known_phase, name)
    return Timed(lambda _: _UNTIMED if known is None else TimedPhase(known))


def _known_phase(name: Phase | str) -> Phase | None:
    try:
        return Phase(name)
    except ValueError:
        _logger.warning("%r is no phase of the contract and is not timed", name)
        return None


def first_content() -> None:
    """The end user sees the first useful content now.

    Marks the enclosing agent's span, else the current one; of several calls within one agent the
    first counts.
    """
    guarded("first content", mark_first_content)


def _bare(decorator: str) -> TypeError:
    """Without its parentheses a decorator is given the function in the place of a name."""
    return TypeError(f"@{decorator} takes parentheses: write @{decorator}(...)")


def _named(operation: OperationName, attribute: str, name: str) -> dict[str, str]:
    attributes = {names.GEN_AI_OPERATION_NAME: operation.value}
    if name:
        attributes[attribute] = name
    return attributes
