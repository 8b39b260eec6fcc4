"""A call under way: its recording, its span, and the requests that are sent for it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from opentelemetry import context as contexts

from llmlat_otel.core import joins
from llmlat_otel.core.attempt import Attempt, Passage, is_cancellation, underway
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.drops import when_dropped
from llmlat_otel.core.emit import Finished, OpenSpan
from llmlat_otel.core.foreign import is_suppressed
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.pulls import BodyPull, EventPull, Parsing, Reader
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.relayed import ServedRecorder
from llmlat_otel.core.reported import read_headers
from llmlat_otel.core.runtime import Runtime, runtime
from llmlat_otel.core.serving import request_underway
from llmlat_otel.core.streams import RawResponse, is_stream, stream
from llmlat_otel.core.wrapping import Wrapper, run_in
from llmlat_semconv import attributes as names
from llmlat_semconv.values import StreamEnd

MakeReader = Callable[[Any, dict[str, Any], bool], Reader]
"""Makes the reader of one call: from the instance, the keyword arguments, and whether visible
reasoning counts as content."""

_LEFT: Final = frozenset({StreamEnd.CLOSED_EARLY, StreamEnd.ABANDONED, StreamEnd.CANCELLED})
"""How a stream ends that the caller does not read to its end."""


def timed(target: str, make_reader: MakeReader) -> Wrapper:
    """A wrapper that times each call of a function that asks for an inference.

    A call within a call is the same one: a method that calls its parent class's, for example.
    """

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        call = guarded(target, _begun, target, partial(make_reader, instance, kwargs))
        return run_in(call, wrapped, args, kwargs)

    return wrapper


def _begun(target: str, make_reader: Callable[[bool], Reader]) -> Call | None:
    """The call that begins; None if none is to be timed."""
    return Call(target, make_reader) if may_begin() else None


def may_begin() -> bool:
    """Whether a call is to be timed: none is within another, which is being made here.

    A task may outlive the making of the call that it was started in, whose stream may go on.
    """
    current = underway.get()
    return (current is None or not current.is_underway) and not is_suppressed()


def call_underway() -> Call | None:
    """The call that this thread or task is making, for the transport beneath it."""
    call = underway.get()
    return call if isinstance(call, Call) and call.is_underway else None


class Call:
    """One call, from its entry to the end of what it returned.

    Args:
        target: What is being timed, for the count of faults.
        make_reader: Makes the call's reader, given whether visible reasoning counts as content.

    Attributes:
        replaces: The traceparent that a request for it may carry by mistake: of who asked for what
            is being served here.
    """

    __slots__ = (
        "_attempts",
        "_awaits_body",
        "_context",
        "_ending",
        "_forget",
        "_is_in_library",
        "_opened",
        "_over_ns",
        "_reader",
        "_recorder",
        "_runtime",
        "is_heard",
        "is_pulling",
        "is_streaming",
        "replaces",
        "target",
    )

    def __init__(self, target: str, make_reader: Callable[[bool], Reader]) -> None:
        self.target = target
        self.is_pulling = False
        self.is_streaming = False
        self.is_heard = True
        self.replaces: str | None = None
        self._is_in_library = False
        self._ending = threading.Lock()
        self._runtime: Runtime = runtime()
        self._reader = make_reader(self._runtime.settings.reasoning_is_content)
        self._opened: OpenSpan | None = None
        self._attempts: dict[int, OpenSpan] = {}
        self._awaits_body = False
        self._over_ns: int | None = None
        self._forget: Callable[[], None] | None = None
        self._start()

    def _start(self) -> None:
        clock = self._runtime.clock
        self._context = contexts.get_current()
        stall_ns = self._runtime.settings.stall_threshold_ns
        self._recorder = self._made_recorder(clock.now_ns(), clock.anchor(), stall_ns)

    def _made_recorder(self, start_ns: int, anchor: Anchor, stall_ns: int) -> PhaseRecorder:
        served = request_underway()
        if served is None:
            return PhaseRecorder(start_ns, anchor, stall_ns)
        self.replaces = served.traceparent
        return ServedRecorder(served, start_ns, anchor, stall_ns)

    @property
    def has_ended(self) -> bool:
        """Whether somebody has told of its end; nobody lets go of that."""
        return self._ending.locked()

    @property
    def is_underway(self) -> bool:
        """Whether it is being made: the library runs, and the caller has nothing of it yet."""
        return self._is_in_library and not self.has_ended

    # The call itself: a scope

    def begin(self) -> None:
        """The library runs: what the transport beneath it does now is done for this call."""
        self._is_in_library = True
        underway.set(self)

    def returned(self) -> None:
        """The caller has control."""
        self._is_in_library = False
        if underway.get() is self:
            underway.set(None)

    def failed(self, error: BaseException) -> None:
        """The library has raised."""
        try:
            self.returned()
        finally:
            self.fail(error)

    def restart(self) -> None:
        """The call begins when its coroutine first runs."""
        if self._opened is None:
            self._start()

    def delivered(self, result: Any) -> Any:
        """Hand over what the library returned, measured further if there is more to come."""
        try:
            self._open()  # At its end another call's span may be the current one.
            if not self.is_heard:  # It was named to the peer, and that is all.
                return result
            if is_stream(result):
                return self.streaming(result)
            return self._raw(result) if hasattr(result, "parse") else self.read(result)
        except BaseException:
            self._forsake()  # The caller gets it as it is: nobody will tell of its end.
            raise

    def _raw(self, response: Any) -> Any:
        """A response of which the caller sees the head before the body is parsed, or read.

        If the body is there the call is over now, but what is in it is known only when the caller
        has it parsed: to parse it here would be work that the caller may never ask for.
        """
        if getattr(response, "is_closed", False):
            self._over_ns = self._runtime.clock.now_ns()
        else:
            self._awaits_body = True
        reading = BodyPull(self, self._recorder, self._runtime.clock.now_ns)
        raw = RawResponse(response, Parsing(self), reading)
        self._watch(raw, response)
        return raw

    def streaming(self, result: Any) -> Any:
        """A stream of the library, measured from here on."""
        self._awaits_body = True
        self.is_streaming = True
        pull = EventPull(self, self._reader, self._recorder, self._runtime.clock.now_ns)
        measured = stream(result, pull)
        self._watch(measured, getattr(result, "response", result))
        return measured

    def read(self, result: Any) -> Any:
        """A response that is there whole, and the call's end."""
        if not self.has_ended:  # It may be parsed once more, as something else.
            guarded(self.target, self._reader.response, result, self._recorder)
            self.end(None, None)
        return result

    def _watch(self, proxy: object, response: Any) -> None:
        """The call is over when what it gave out is dropped: the last of it, if it gave out more.

        Closing a response of the library's behind our back leaves no trace but this one; we do not
        keep it, since the proxy may be reached from it.
        """
        self._unwatch()
        try:
            kept = weakref.ref(response)
        except TypeError:  # A built-in iterator, for example.
            kept = None
        self._forget = when_dropped(proxy, partial(self._dropped, kept), self._is_dropped)

    def _is_dropped(self) -> None:
        """A body that is closed from now on is closed because it was dropped."""
        self.is_pulling = True

    def _unwatch(self) -> None:
        if self._forget is not None:
            self._forget()

    # Its end: the first one counts, whichever thread it comes from

    def end(
        self, stream_end: StreamEnd | None, error: BaseException | None, at_ns: int | None = None
    ) -> None:
        """The call is over.

        Args:
            stream_end: How its stream ended; None if it was not streamed.
            error: What it failed with, if it did.
            at_ns: When; now if None.
        """
        if not self._ending.acquire(blocking=False):
            return
        guarded(self.target, self._unwatch)
        if not guarded(self.target, self._finish, stream_end, error, at_ns):
            guarded(self.target, self._give_up)

    def body_received(self, at_ns: int) -> bool:
        """Some of the response's body has arrived; whether more of it is worth a mark."""
        self._recorder.body_received(at_ns)
        return not self.is_streaming

    def body_complete(self) -> None:
        """The response's body has arrived whole, for a caller that reads it without parsing."""
        if self._awaits_body and not self.is_pulling:
            self.end_body(StreamEnd.COMPLETE)

    def body_ended(self) -> None:
        """The transport has closed the response's body.

        Within a pull it is for the stream to tell what that means. Otherwise the caller has closed
        the response itself.
        """
        if self._awaits_body and not self.is_pulling:
            self.end_body(StreamEnd.CLOSED_EARLY)

    def body_failed(self, error: BaseException) -> None:  # noqa: ARG002
        """The body was closed after a read of it failed, which whoever pulls will tell."""
        self.body_ended()

    def body_dropped(self) -> None:
        """The body was closed as the response was dropped."""
        self.body_ended()

    def end_body(self, end: StreamEnd, at_ns: int | None = None) -> None:
        """The call is over with its response, which may be a stream or not."""
        is_streamed = guarded(self.target, self._is_streamed)
        self.end(end if is_streamed else None, None, at_ns)

    def _is_streamed(self) -> bool:
        return self.is_streaming or bool(self._reader.request.streamed)

    def _is_told_apart(self) -> bool:
        """Whether somebody tells the events of its stream apart; whoever reads bytes does not."""
        return self.is_streaming or not self._awaits_body

    def close(self, error: BaseException | None) -> None:
        """The call is over: the caller has closed what it gave out, because of an error or not."""
        if error is not None and is_cancellation(error):
            self.fail(error)
        else:
            self.end_body(StreamEnd.CLOSED_EARLY)

    def fail(self, error: BaseException) -> None:
        """The call is over, by an exception that is passed on."""
        self.end(guarded(self.target, self._failed_end, error), error)

    def _failed_end(self, error: BaseException) -> StreamEnd | None:
        end = StreamEnd.CANCELLED if is_cancellation(error) else StreamEnd.FAILED
        return end if self._is_streamed() else None

    def _dropped(self, response: weakref.ref[Any] | None) -> None:
        """What the call gave out is gone: it ended at the last event, not at this moment."""
        is_closed = response is not None and getattr(response(), "is_closed", False)
        end = StreamEnd.CLOSED_EARLY if is_closed else StreamEnd.ABANDONED
        self.end_body(end, self._recorder.last_event_ns)

    def _finish(
        self, stream_end: StreamEnd | None, error: BaseException | None, at_ns: int | None
    ) -> bool:
        """Write what there is to say; whether nothing went wrong."""
        cancelled = error is not None and is_cancellation(error)
        is_waited_for = at_ns is None and not cancelled
        if self._reader.is_whole and stream_end in _LEFT:
            stream_end, error, cancelled = StreamEnd.COMPLETE, None, False
            self._reader.facts[names.LLMLAT_STREAM_UNREAD] = True
        failure = self._failure_of(error)
        if self._over_ns is not None:
            at_ns = self._over_ns
        end_ns = self._runtime.clock.now_ns() if at_ns is None else at_ns
        recording = self._recorder.finish(
            end_ns,
            stream_end,
            failure,
            cancelled=cancelled,
            is_told_apart=self._is_told_apart(),
        )
        finished = Finished(self._reader.request, recording, self._reader.facts, failure)
        self._runtime.emitter.finish(self._open(), self._attempts, finished)
        if is_waited_for:
            guarded(joins.TARGET, joins.child_ended, self._context, self._open().span, end_ns)
        return True

    def _failure_of(self, error: BaseException | None) -> str | None:
        return error_type(error)

    def _forsake(self) -> None:
        """What becomes of the call will not be known."""
        if self._ending.acquire(blocking=False):
            guarded(self.target, self._unwatch)
            guarded(self.target, self._give_up)

    def _give_up(self) -> None:
        """Nothing can be said of the call; its spans end all the same."""
        for opened in (*self._attempts.values(), self._opened):
            if opened is not None and opened.span.is_recording():
                self._runtime.emitter.end(opened, self._recorder.last_event_ns, None)

    # Its span, opened late: a GenAI span of the same call may be opened above the transport,
    # by whichever instrumentation was installed first

    def _open(self) -> OpenSpan:
        if self._opened is None:
            self._opened = self._runtime.emitter.open_inference(
                self._reader.request, self._context, self._recorder.start_ns, self._recorder.anchor
            )
            self.is_heard = self._runtime.emitter.is_heard(self._opened)
        return self._opened

    # What the transport does for it

    def begin_attempt(self, host: str | None, port: int | None = None) -> Passage | None:
        """A request is handed to the transport; None if it goes elsewhere than the call."""
        request = self._reader.request
        for theirs, ours in ((host, request.server_address), (port, request.server_port)):
            if theirs is not None and ours is not None and theirs != ours:
                return None
        operation = self._open()
        if not self.is_heard:
            return Passage(self, operation)
        now_ns = self._runtime.clock.now_ns()
        number = self._recorder.begin_attempt(now_ns)
        opened = operation
        if number > 1 and operation.is_recording:
            opened = self._runtime.emitter.open_attempt(operation, request, number, now_ns)
            self._attempts[number] = opened
        return Attempt(self, self._recorder, self._runtime.clock.now_ns, opened)

    def head_received(self, headers: Mapping[str, str]) -> None:
        """The response's head is there, of a request that has not failed."""
        read_headers(headers, self._recorder, self._reader.facts)

    def refused(self, status: int) -> None:
        """The response's head is there, and says no: the library tells what comes of it."""
