"""A call under way: its recording, its span, and the requests that are sent for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from opentelemetry import context as contexts

from llmlat_otel.core.attempt import Attempt, is_cancellation, underway
from llmlat_otel.core.attributes import Attributes, Request, error_type
from llmlat_otel.core.emit import Finished, OpenSpan
from llmlat_otel.core.guard import guarded, note_fault
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.runtime import Runtime, runtime
from llmlat_otel.core.wrapping import RawResponse, Wrapper, is_stream, run_in, stream
from llmlat_semconv.values import ContentKind, StreamEnd


class Reader(Protocol):
    """Reads one call of a library: what it asks for, and what its response says.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far, for the operation span.
    """

    request: Request
    facts: Attributes

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read a streamed event; what is useful in it, if anything."""

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a response that came whole."""


MakeReader = Callable[[Any, dict[str, Any], bool], Reader]
"""Makes the reader of one call: from the instance, the keyword arguments, and whether visible
reasoning counts as content."""


def timed(target: str, make_reader: MakeReader) -> Wrapper:
    """A wrapper that times each call of a function that asks for an inference.

    A call within a call is the same one: a method that calls its parent class's, for example.
    """

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        call = None
        if _is_idle():
            call = guarded(target, Call, target, partial(make_reader, instance, kwargs))
        return wrapped(*args, **kwargs) if call is None else run_in(call, wrapped, args, kwargs)

    return wrapper


def call_underway() -> Call | None:
    """The call that this thread or task is making, for the transport beneath it."""
    call = underway.get()
    return call if isinstance(call, Call) and not call.has_ended else None


def _is_idle() -> bool:
    """Whether no call is being made here: a task may outlive the call that it was started in."""
    current = underway.get()
    return current is None or current.has_ended


class Call:
    """One call, from its entry to the end of what it returned.

    Args:
        target: What is being timed, for the count of faults.
        make_reader: Makes the call's reader, given whether visible reasoning counts as content.
    """

    __slots__ = (
        "_attempts",
        "_awaits_body",
        "_context",
        "_opened",
        "_reader",
        "_recorder",
        "_runtime",
        "has_ended",
        "is_pulling",
        "is_streaming",
        "target",
    )

    def __init__(self, target: str, make_reader: Callable[[bool], Reader]) -> None:
        self.target = target
        self.is_pulling = False
        self.is_streaming = False
        self._runtime: Runtime = runtime()
        self._reader = make_reader(self._runtime.settings.reasoning_is_content)
        self._opened: OpenSpan | None = None
        self._attempts: dict[int, OpenSpan] = {}
        self._awaits_body = False
        self.has_ended = False
        self._begin()

    def _begin(self) -> None:
        clock = self._runtime.clock
        self._context = contexts.get_current()
        self._recorder = PhaseRecorder(
            clock.now_ns(), clock.anchor(), self._runtime.settings.stall_threshold_ns
        )

    # The call itself: a scope

    def __enter__(self) -> None:
        underway.set(self)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if underway.get() is self:
            underway.set(None)
        if error is not None:
            self.fail(error)

    def restart(self) -> None:
        """The call begins when its coroutine first runs."""
        if self._opened is None:
            guarded(self.target, self._begin)

    def delivered(self, result: Any) -> Any:
        """Hand over what the library returned, measured further if there is more to come."""
        replacement = guarded(self.target, self._delivered, result)
        return result if replacement is None else replacement

    def _delivered(self, result: Any) -> Any:
        self._open()  # At its end another call's span may be the current one.
        if is_stream(result):
            return self.streaming(result)
        if not hasattr(result, "parse"):
            return self.read(result)
        if not _is_read(result):
            self._awaits_body = True
            return RawResponse(result, _Parsing(self), self.abandoned)
        self.end(None, None)
        return result

    def streaming(self, result: Any) -> Any:
        """A stream of the library, measured from here on."""
        self._awaits_body = True
        self.is_streaming = True
        return stream(result, _ChunkPull(self, self._reader, self._recorder, self._runtime))

    def read(self, result: Any) -> Any:
        """A response that is there whole, and the call's end."""
        guarded(self.target, self._reader.response, result, self._recorder)
        self.end(None, None)
        return result

    # Its end: the first one counts

    def end(
        self, stream_end: StreamEnd | None, error: BaseException | None, at_ns: int | None = None
    ) -> None:
        """The call is over.

        Args:
            stream_end: How its stream ended; None if it was not streamed.
            error: What it failed with, if it did.
            at_ns: When; now if None.
        """
        if not self.has_ended:
            self.has_ended = True
            guarded(self.target, self._finish, stream_end, error, at_ns)

    def abandoned(self) -> None:
        """What the call returned was dropped: it ended at the last event, not at this moment."""
        end = StreamEnd.ABANDONED if self.is_streaming else None
        self.end(end, None, self._recorder.last_event_ns)

    def body_complete(self) -> None:
        """The response's body has arrived whole, for a caller that reads it without parsing."""
        if self._awaits_body and not self.is_pulling:
            self.end(StreamEnd.COMPLETE if self.is_streaming else None, None)

    def body_ended(self) -> None:
        """The transport has closed the response's body.

        Within a pull it is for the stream to tell what that means. Otherwise the caller has closed
        the response itself.
        """
        if self._awaits_body and not self.is_pulling:
            self.end(StreamEnd.CLOSED_EARLY if self.is_streaming else None, None)

    def fail(self, error: BaseException) -> None:
        """The call is over, by an exception that is passed on."""
        end = StreamEnd.CANCELLED if is_cancellation(error) else StreamEnd.FAILED
        self.end(end if self._reader.request.streamed else None, error)

    def _finish(
        self, stream_end: StreamEnd | None, error: BaseException | None, at_ns: int | None
    ) -> None:
        failure = error_type(error)
        end_ns = self._runtime.clock.now_ns() if at_ns is None else at_ns
        cancelled = error is not None and is_cancellation(error)
        recording = self._recorder.finish(end_ns, stream_end, failure, cancelled=cancelled)
        finished = Finished(self._reader.request, recording, self._reader.facts, failure)
        self._runtime.emitter.finish(self._open(), self._attempts, finished)

    # Its span, opened late: a GenAI span of the same call may be opened above the transport,
    # by whichever instrumentation was installed first

    def _open(self) -> OpenSpan:
        if self._opened is None:
            self._opened = self._runtime.emitter.open_inference(
                self._reader.request, self._context, self._recorder.start_ns, self._recorder.anchor
            )
        return self._opened

    # What the transport does for it

    def begin_attempt(self, host: str | None) -> Attempt | None:
        """A request is handed to the transport; None if it goes to another host than the call."""
        address = self._reader.request.server_address
        if address is not None and host is not None and host != address:
            return None
        now_ns = self._runtime.clock.now_ns()
        operation = self._open()
        number = self._recorder.begin_attempt(now_ns)
        opened = operation
        if number > 1 and operation.is_recording:
            request = self._reader.request
            opened = self._runtime.emitter.open_attempt(operation, request, number, now_ns)
            self._attempts[number] = opened
        return Attempt(self, self._recorder, self._runtime.clock.now_ns, opened)


class _Parsing:
    """The scope of a raw response's `parse`: it may read the body, and give a stream."""

    __slots__ = ("_call", "_known")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known: tuple[Any, Any] | None = None

    def __enter__(self) -> None:
        self._call.is_pulling = True

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._call.is_pulling = False
        if error is not None:
            self._call.fail(error)

    def restart(self) -> None:
        """Nothing to start again."""

    def delivered(self, result: Any) -> Any:
        """What was parsed; the library gives the same object each time, and so does this."""
        if self._known is None or self._known[0] is not result:
            measured = self._call.streaming if is_stream(result) else self._call.read
            replacement = guarded(self._call.target, measured, result)
            self._known = (result, result if replacement is None else replacement)
        return self._known[1]


class _ChunkPull:
    """Each pull of a call's stream."""

    __slots__ = ("_call", "_now_ns", "_pulled_ns", "_reader", "_recorder", "_target")

    def __init__(self, call: Call, reader: Reader, recorder: PhaseRecorder, sdk: Runtime) -> None:
        self._call = call
        self._target = call.target
        self._reader = reader
        self._recorder = recorder
        self._now_ns = sdk.clock.now_ns
        self._pulled_ns: int | None = None

    def __enter__(self) -> None:
        self._call.is_pulling = True
        self._pulled_ns = guarded(self._target, self._now_ns)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._call.is_pulling = False
        if error is None:
            return
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            self._call.end(StreamEnd.COMPLETE, None)
        else:
            self._call.fail(error)

    def received(self, event: Any) -> None:
        """Runs per chunk: a guard of its own, since a call through the common one takes longer."""
        try:
            at_ns, content = self._now_ns(), None
            try:
                content = self._reader.event(event, at_ns, self._recorder)
            finally:  # An event that cannot be read has come all the same.
                if self._pulled_ns is not None:
                    self._recorder.received(self._pulled_ns, at_ns, content)
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is ours
            note_fault(self._target, fault)

    def closed(self, error: BaseException | None) -> None:
        if error is not None and is_cancellation(error):
            self._call.end(StreamEnd.CANCELLED, error)
        else:
            self._call.end(StreamEnd.CLOSED_EARLY, None)

    def abandoned(self) -> None:
        self._call.abandoned()


def _is_read(response: Any) -> bool:
    return bool(getattr(response, "is_closed", False))
