"""The upstream call of a gateway: a request to a model that it passes on as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from llmlat_otel.core import joins
from llmlat_otel.core.attempt import Passage, underway
from llmlat_otel.core.attributes import Attributes, Request, error_type
from llmlat_otel.core.call import Call
from llmlat_otel.core.endpoints import is_stream_of_events, request_to
from llmlat_otel.core.foreign import is_suppressed
from llmlat_otel.core.pulls import BodyPull
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.relayed import UpstreamRecorder
from llmlat_otel.core.serving import Served
from llmlat_otel.core.streams import stream
from llmlat_semconv import attributes as names
from llmlat_semconv.values import StreamEnd

# Theory of operation
# ===================
#
# A gateway that forwards what it gets asks the transport itself: the transport's own function is
# the call, and its one attempt. The caller gets the transport's own response, and the call is over
# when its body is: read to its end, closed, dropped, or failed.
#
#   send() ──> begin: the request names this span ── response ──> delivered ──> its body ──> end
#
# An asynchronous function has begun when it is awaited, not when it is called; what is never
# awaited has never been.

BeginSending = Callable[["UpstreamCall"], Passage | None]
"""Hands the request to the transport, for the call: its attempt."""

Follow = Callable[["UpstreamCall", Any], None]
"""Has the call told of what becomes of a response's body."""

_CONTENT_TYPE: Final = "content-type"


class _Reader:
    """Knows where a request goes, and what the head of its response says."""

    __slots__ = ("facts", "request")

    is_terminated = True
    """What is not read is taken for whole when it is over, and not a moment earlier."""

    is_whole = False

    def __init__(self, request: Request) -> None:
        self.request = request
        self.facts: Attributes = {}

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> None:
        """Nobody tells events apart."""

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """What is passed on is not read."""


class UpstreamCall(Call):
    """One request of a gateway to a model, and the response to it.

    Args:
        target: What is being timed, for the count of faults.
        request: What it asks for.
        served: The request that it is made for.
        begin_sending: Hands it to the transport.
        follow: Follows the response's body.
        is_to_come: Whether the function is an asynchronous one.
    """

    __slots__ = (
        "_begin_sending",
        "_failure",
        "_follow",
        "_is_to_come",
        "_passage",
        "_served",
    )

    def __init__(
        self,
        target: str,
        request: Request,
        served: Served,
        begin_sending: BeginSending,
        follow: Follow,
        *,
        is_to_come: bool,
    ) -> None:
        self._served = served
        self._begin_sending = begin_sending
        self._follow = follow
        self._is_to_come = is_to_come
        self._passage: Passage | None = None
        self._failure: str | None = None
        super().__init__(target, lambda _: _Reader(request))

    def _made_recorder(self, start_ns: int, anchor: Anchor, stall_ns: int) -> PhaseRecorder:
        self.replaces = self._served.traceparent
        return UpstreamRecorder(self._served, start_ns, anchor, stall_ns)

    # The sending: a scope

    def begin(self) -> None:
        """The transport runs, or will."""
        if self._is_to_come:
            return
        super().begin()
        if self._passage is None:
            self._passage = self._begin_sending(self)
        if self._passage is not None:
            self._passage.begin()

    def restart(self) -> None:
        """The transport's coroutine runs."""
        self._is_to_come = False
        super().restart()

    def returned(self) -> None:
        """The caller has control."""
        try:
            if self._passage is not None:
                self._passage.returned()
        finally:
            super().returned()

    def failed(self, error: BaseException) -> None:
        """Nothing came back."""
        try:
            if self._passage is not None:
                self._passage.failed(error)
        finally:
            try:
                super().returned()
            finally:
                self.fail(error)

    def delivered(self, result: Any) -> Any:
        """The response's head is there, or all of it."""
        passage = self._passage
        if passage is None:  # It was not begun: there is nothing to tell.
            self._forsake()
        elif passage.is_heard:
            try:
                passage.delivered(result)
                self._follow(self, result)
            except BaseException:
                self._forsake()
                raise
        return result

    # The response

    def head_received(self, headers: Mapping[str, str]) -> None:
        """The response's head is there, of a request that has not failed."""
        reader = self._reader
        if is_stream_of_events(headers.get(_CONTENT_TYPE)):
            reader.request = reader.request._replace(streamed=True)
            reader.facts[names.GEN_AI_REQUEST_STREAM] = True
        super().head_received(headers)

    def refused(self, status: int) -> None:
        """The response's head is there, and says no; it is passed on all the same."""
        self._failure = str(status)

    def body_is_there(self) -> None:
        """All of the body was read before anybody got the response."""
        self.end_body(StreamEnd.COMPLETE)

    def pulled(self, body: Any, response: Any) -> Any:
        """A body whose parts the caller pulls, measured from here on."""
        self._awaits_body = True
        self.is_streaming = True  # The transport need not tell of its reads.
        measured = stream(body, BodyPull(self, self._recorder, self._runtime.clock.now_ns))
        self._watch(measured, response)
        return measured

    def read_by_itself(self, body: Any, response: Any) -> None:
        """A body whose reads the transport tells of, one by one."""
        self._awaits_body = True
        self._watch(body, response)

    def body_received(self, at_ns: int) -> bool:
        """Some of the body has arrived; whether more of it is worth a mark."""
        if self.is_streaming:  # Its pulls tell.
            return False
        if self._awaits_body:
            self._recorder.part_received(at_ns)
        else:
            self._recorder.body_received(at_ns)
        return True

    def body_failed(self, error: BaseException) -> None:
        """The body could not be read, and nobody tries any more."""
        self.fail(error)

    def body_dropped(self) -> None:
        """The response was dropped before its body was read."""
        self._dropped(None)

    def _is_streamed(self) -> bool:
        """What is read part by part need not be a stream: its head says so."""
        return bool(self._reader.request.streamed)

    def _is_told_apart(self) -> bool:
        """What is passed on is not read."""
        return False

    def _failure_of(self, error: BaseException | None) -> str | None:
        return error_type(error) or self._failure


def upstream_call(
    target: str,
    served: Served,
    to: tuple[str, str | None, int | None, str],
    begin_sending: BeginSending,
    follow: Follow,
    *,
    is_to_come: bool,
) -> UpstreamCall | None:
    """The call that a request is, of a gateway to its upstream; None if it is none.

    It is none if it goes elsewhere than to a model, or is sent for a library's call, or in an agent
    or a tool: then it is the application's own to tell of.

    Args:
        target: What is being timed, for the count of faults.
        served: The request that is being served.
        to: The method, and the host, port and path that it goes to.
        begin_sending: See `UpstreamCall`.
        follow: See `UpstreamCall`.
        is_to_come: See `UpstreamCall`.
    """
    request = request_to(*to)
    above = underway.get()
    if (
        request is None
        or (above is not None and above.is_underway)
        or joins.enclosing() is not None
        or is_suppressed()
    ):
        return None
    return UpstreamCall(target, request, served, begin_sending, follow, is_to_come=is_to_come)
