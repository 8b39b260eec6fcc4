"""Operations and phases that the application times: one run of each, as a span or part of one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span

from llmlat_otel.core import joins, propagation
from llmlat_otel.core.attempt import is_cancellation
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.emit import OpenSpan
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.joins import Joins
from llmlat_otel.core.recording import PhaseInterval
from llmlat_otel.core.runtime import runtime
from llmlat_otel.core.serving import request_underway
from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_FIRST_CONTENT, LLMLAT_JOIN
from llmlat_semconv.phases import Phase

TARGET = "manual operation"

_AGENT = contexts.create_key("llmlat-agent")


class Timing(Protocol):
    """One run of a block or function that the application times; it is called under the guard."""

    span: Span

    def resume(self) -> None:
        """The block runs from here on."""

    def suspend(self) -> None:
        """The block has handed back control."""

    def end(self, error: BaseException | None, done: object = None) -> None:
        """The block is over; called once or more.

        Args:
            error: What it failed with, if it did.
            done: The task or future that it has ended with, if it goes on in one.
        """

    def forgo(self) -> None:
        """The block will never run: it has taken no time."""


class Operation:
    """Times an operation as a span that is current while the block runs.

    Args:
        name: Of the span.
        attributes: Of the span.
        is_agent: Whether it is an agent, whose first content is the end user's.
    """

    __slots__ = (
        "_before",
        "_context",
        "_enclosing",
        "_joins",
        "_opened",
        "_runtime",
        "_start_ns",
        "span",
    )

    def __init__(self, name: str, attributes: Mapping[str, str], *, is_agent: bool = False) -> None:
        self.span: Span = INVALID_SPAN
        self._runtime = runtime()
        self._before: Context | None = None
        self._enclosing: Joins | None = None
        self._joins: Joins | None = None
        self._start_ns = 0
        self._opened = guarded(name, self._open, name, attributes)
        if self._opened is not None:
            guarded(TARGET, self._claim)
            self.span = self._opened.span
            self._context = self._opened.context
            if is_agent:
                guarded(TARGET, self._show, self._opened)
            if self._opened.is_recording:
                guarded(joins.TARGET, self._watch, self._opened)

    def _open(self, name: str, attributes: Mapping[str, str]) -> OpenSpan:
        clock = self._runtime.clock
        self._start_ns = clock.now_ns()
        return self._runtime.emitter.open_operation(
            name, attributes, self._start_ns, clock.anchor()
        )

    def _claim(self) -> None:
        """Have the request that is being answered know that it is no gateway's."""
        served = request_underway()
        if served is not None:
            served.is_apps_own()

    def _show(self, opened: OpenSpan) -> None:
        """Have whoever shows first content find it."""
        self._context = contexts.set_value(_AGENT, _Agent(opened), self._context)

    def _watch(self, opened: OpenSpan) -> None:
        """Have its children find it, to tell it when they end."""
        self._enclosing = joins.enclosing()
        span_id = opened.span.get_span_context().span_id
        tell = partial(self._tell, opened)
        self._joins = Joins(span_id, self._enclosing, self._runtime.clock.now_ns, tell)
        self._context = joins.within(self._joins, self._context)

    def _tell(self, opened: OpenSpan, span_ids: tuple[str, ...], at_ns: int) -> None:
        said = {names.LLMLAT_JOIN_SPAN_IDS: span_ids}
        self._runtime.emitter.add_event(opened, LLMLAT_JOIN, at_ns, said)

    def resume(self) -> None:
        """Its span is the current one from here on."""
        if self._opened is not None:
            self._before = propagation.enter(self._context)
            if self._joins is not None:
                guarded(joins.TARGET, self._joins.begin)

    def suspend(self) -> None:
        """What was current before is so again."""
        before, self._before = self._before, None
        if before is not None:
            if self._joins is not None:
                guarded(joins.TARGET, self._joins.pause)
            propagation.leave(self._context, before)

    def end(self, error: BaseException | None, done: object = None) -> None:
        """End its span, and tell the operation around it."""
        opened, self._opened = self._opened, None
        if opened is not None:
            if self._joins is not None:
                guarded(joins.TARGET, self._joins.close)
            end_ns = guarded(TARGET, self._end, opened, error)
            if end_ns is None:
                guarded(TARGET, self._runtime.emitter.give_up, opened)
            is_waited_for = error is None or not is_cancellation(error)
            if self._enclosing is not None and end_ns is not None and is_waited_for:
                guarded(joins.TARGET, self._enclosing.ended, opened.span, end_ns, done)

    def _end(self, opened: OpenSpan, error: BaseException | None) -> int:
        end_ns = self._runtime.clock.now_ns()
        self._runtime.emitter.end(opened, end_ns, error_type(error))
        return end_ns

    def forgo(self) -> None:
        """End its span where it began."""
        opened, self._opened = self._opened, None
        if opened is not None:
            guarded(TARGET, self._runtime.emitter.end, opened, self._start_ns, None)


class _Agent:
    """The enclosing agent, which shows its first content once."""

    __slots__ = ("has_shown", "opened")

    def __init__(self, opened: OpenSpan) -> None:
        self.opened = opened
        self.has_shown = False


class TimedPhase:
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

    def end(self, error: BaseException | None, done: object = None) -> None:  # noqa: ARG002
        """Write it."""
        parent, self._parent = self._parent, None
        if parent is not None:
            guarded("phase", self._end, parent, error)

    def _end(self, parent: OpenSpan, error: BaseException | None) -> None:
        end_ns = self._runtime.clock.now_ns()
        truncated = error is not None
        interval = PhaseInterval(self._phase, self._start_ns, end_ns, 0, truncated)
        served = request_underway()
        if served is not None:
            served.timed(interval)
        self._runtime.emitter.write_phase(parent, interval)

    def forgo(self) -> None:
        """Write nothing."""
        self._parent = None


class Untimed:
    """Stands where nothing can be timed."""

    span: Span = INVALID_SPAN

    def resume(self) -> None:
        """Nothing to do."""

    def suspend(self) -> None:
        """Nothing to do."""

    def end(self, error: BaseException | None, done: object = None) -> None:
        """Nothing to do."""

    def forgo(self) -> None:
        """Nothing to do."""


def mark_first_content() -> None:
    """The end user sees the first useful content now; of several calls the first counts."""
    sdk = runtime()
    enclosing = contexts.get_value(_AGENT)
    if not isinstance(enclosing, _Agent):
        enclosing = _Agent(sdk.emitter.current(sdk.clock.anchor()))
    if not enclosing.has_shown:
        enclosing.has_shown = True
        sdk.emitter.add_event(enclosing.opened, LLMLAT_FIRST_CONTENT, sdk.clock.now_ns())
