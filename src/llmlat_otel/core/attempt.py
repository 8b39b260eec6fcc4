"""An attempt: one request that is sent for a call, as its transport sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from opentelemetry.context import Context

from llmlat_otel.core import propagation
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.emit import OpenSpan
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import AttemptOutcome

_CANCELLATIONS: Final = frozenset({"CancelledError", "Cancelled", "GeneratorExit"})


class Owner(Protocol):
    """The call that the request is sent for."""

    @property
    def target(self) -> str:
        """What is being timed, for the count of faults."""

    @property
    def is_streaming(self) -> bool:
        """Whether its events are measured one by one, as the caller pulls them."""

    @property
    def is_underway(self) -> bool:
        """Whether it is being made: the library runs, and the caller has nothing of it yet."""

    @property
    def replaces(self) -> str | None:
        """The traceparent that a request for it may carry by mistake: of who asked a gateway."""

    def head_received(self, headers: Mapping[str, str]) -> None:
        """The response's head is there, of a request that has not failed."""

    def refused(self, status: int) -> None:
        """The response's head is there, and says no."""

    def body_received(self, at_ns: int) -> bool:
        """Some of the response's body has arrived; whether more of it is worth a mark."""

    def body_complete(self) -> None:
        """The response's body has arrived whole."""

    def body_ended(self) -> None:
        """The response's body is closed."""

    def body_failed(self, error: BaseException) -> None:
        """The response's body is closed, and the last read of it has failed."""

    def body_dropped(self) -> None:
        """The response's body is closed because the response is gone."""


underway: ContextVar[Owner | Passage | None] = ContextVar("llmlat-call", default=None)
"""The call that this thread or task is making, for the transport beneath it; while a request is
being sent, the attempt: what is sent meanwhile is none of the call's.

It is set back by value, never by token: a coroutine may be closed in another context than its own.
"""


class Passage:
    """One request of a call: the scope of its sending. It notes nothing: nobody would hear of it.

    The call's span is the current one while the request is being sent, so that what other
    instrumentations record of the transport hangs under it, or is not sampled either. Requests that
    are made meanwhile, to fetch a token for example, are none of the call's.

    Its methods are called under the guard.
    """

    __slots__ = ("_before", "_call", "_context", "_headers", "_opened", "target")

    is_heard = False
    """Whether anything is made of what it is told."""

    def __init__(self, call: Owner, opened: OpenSpan) -> None:
        self.target = call.target
        self._call = call
        self._opened = opened
        self._before: Context | None = None
        self._context = opened.context
        self._headers: object = None

    @property
    def is_underway(self) -> bool:
        """Whether the call that it is made for is being made."""
        return self._call.is_underway

    def name_parent(self, headers: MutableMapping[str, str]) -> None:
        """Name this attempt as the parent of what the peer does."""
        self._headers = headers
        parent = self._opened.span.get_span_context()
        named = propagation.traceparent_of(parent), propagation.tracestate_of(parent)
        propagation.inject(headers, *named, self._call.replaces)

    def unname_parent(self, headers: MutableMapping[str, str]) -> None:
        """Take that back: the same request is to be sent for another attempt."""
        own = propagation.traceparent_of(self._opened.span.get_span_context())
        if headers.get(propagation.TRACEPARENT) == own:
            headers.pop(propagation.TRACEPARENT, None)

    def is_carried_by(self, headers: object) -> bool:
        """Whether these are the headers of its own request, on its way through a transport."""
        return headers is not None and headers is self._headers

    def begin(self) -> None:
        """The request is being sent."""
        underway.set(self)
        self._context = self._opened.within_current()
        self._before = propagation.enter(self._context)

    def returned(self) -> None:
        """The library above the transport has control again."""
        try:
            if underway.get() is self:
                underway.set(self._call)
        finally:
            propagation.leave(self._context, self._before)

    def failed(self, error: BaseException) -> None:
        """The request could not be sent, or nothing came back."""
        self._headers = None
        try:
            self.returned()
        finally:
            self._lost(error)

    def _lost(self, error: BaseException) -> None:
        """It came to nothing."""

    def restart(self) -> None:
        """Libraries await what they send at once."""

    def delivered(self, response: Any) -> Any:
        """The response's head is there."""
        self._headers = None  # They are the caller's, and a timer of its loop may keep this alive.
        return response

    def mark(self, phase: Phase | None) -> None:
        """A phase of the transport begins now; None: it ends, and no other begins."""

    def body_received(self) -> bool:
        """Some of the response's body has arrived; whether more of it is worth a mark."""
        return False

    def body_complete(self) -> None:
        """The response's body has arrived whole."""

    def body_ended(self) -> None:
        """The response's body is closed."""

    def body_failed(self, error: BaseException) -> None:
        """The response's body is closed, and the last read of it has failed."""

    def body_dropped(self) -> None:
        """The response's body is closed because the response is gone."""


class Attempt(Passage):
    """The same, of a call that is heard of: what the transport does is marked."""

    __slots__ = ("_now_ns", "_recorder")

    is_heard = True

    def __init__(
        self, call: Owner, recorder: PhaseRecorder, now_ns: Callable[[], int], opened: OpenSpan
    ) -> None:
        super().__init__(call, opened)
        self._recorder = recorder
        self._now_ns = now_ns

    def _lost(self, error: BaseException) -> None:
        outcome = AttemptOutcome.FAILED
        if is_cancellation(error):
            outcome = AttemptOutcome.CANCELLED
        self._fail(outcome, error_type(error))

    def delivered(self, response: Any) -> Any:
        """The response's head is there; one that says no is a failed attempt."""
        self._headers = None
        self._recorder.head_received(self._now_ns())
        status = getattr(response, "status_code", None) or response.status  # httpx, aiohttp
        if status >= 400:
            self._fail(AttemptOutcome.FAILED, str(status))
            self._call.refused(status)
        else:
            self._call.head_received(response.headers)
        return response

    def _fail(self, outcome: AttemptOutcome, failure: str | None) -> None:
        self._recorder.fail_attempt(self._now_ns(), outcome, failure)

    def mark(self, phase: Phase | None) -> None:
        """A phase of the transport begins now; None: it ends, and no other begins."""
        if phase is None:
            self._recorder.leave(self._now_ns())
        else:
            self._recorder.enter(phase, self._now_ns())

    def body_received(self) -> bool:
        """Some of the response's body has arrived; whether more of it is worth a mark."""
        return self._call.body_received(self._now_ns())

    def body_complete(self) -> None:
        """The response's body has arrived whole."""
        self._call.body_complete()

    def body_ended(self) -> None:
        """The response's body is closed."""
        self._call.body_ended()

    def body_failed(self, error: BaseException) -> None:
        """The response's body is closed, and the last read of it has failed."""
        self._call.body_failed(error)

    def body_dropped(self) -> None:
        """The response's body is closed because the response is gone."""
        self._call.body_dropped()


def is_cancellation(error: BaseException) -> bool:
    """Whether an exception means that the caller gave up (asyncio, trio, a closed coroutine)."""
    return any(each.__name__ in _CANCELLATIONS for each in type(error).__mro__)
