"""Pulls: what is noted of each step of what a call gives out, as events, as bytes, or parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from llmlat_otel.core.attributes import Attributes, Request
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.streams import is_stream
from llmlat_semconv.values import ContentKind, StreamEnd


class Reader(Protocol):
    """Reads one call of a library: what it asks for, and what its response says.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far, for the operation span.
    """

    request: Request
    facts: Attributes

    @property
    def is_terminated(self) -> bool:
        """Whether what came has said that it ends there: by a finish reason, a last event.

        A stream that is over without is incomplete.
        """

    @property
    def is_whole(self) -> bool:
        """Whether all that was asked for has said so: nothing that is left unread is missed.

        A stream that is left from then on is complete.
        """

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read a streamed event; what is useful in it, if anything."""

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a response that came whole."""


class Pulled(Protocol):
    """The call whose response is pulled.

    Attributes:
        target: What is being timed, for the count of faults.
        is_pulling: Whether the caller is within a step: what the transport tells is part of it.
    """

    target: str
    is_pulling: bool

    def streaming(self, result: Any) -> Any:
        """A stream of the library, measured from here on."""

    def read(self, result: Any) -> Any:
        """A response that is there whole, and the call's end."""

    def end(self, stream_end: StreamEnd | None, error: BaseException | None) -> None:
        """The call is over."""

    def end_body(self, end: StreamEnd) -> None:
        """The call is over with its response, which may be a stream or not."""

    def close(self, error: BaseException | None) -> None:
        """The call is over: the caller has closed what it gave out, because of an error or not."""

    def fail(self, error: BaseException) -> None:
        """The call is over, by an exception that is passed on."""


class Parsing:
    """The scope of a raw response's `parse`: it may read the body, and give a stream."""

    __slots__ = ("_call", "_known", "target")

    def __init__(self, call: Pulled) -> None:
        self.target = call.target
        self._call = call
        self._known: tuple[Any, Any] | None = None

    def begin(self) -> None:
        """What the transport tells now is part of it."""
        self._call.is_pulling = True

    def returned(self) -> None:
        """The caller has control."""
        self._call.is_pulling = False

    def failed(self, error: BaseException) -> None:
        """The response cannot be parsed."""
        self._call.is_pulling = False
        self._call.fail(error)

    def restart(self) -> None:
        """Nothing to start again."""

    def delivered(self, result: Any) -> Any:
        """What was parsed; the library gives the same object each time, and so does this."""
        if self._known is None or self._known[0] is not result:
            # Where it cannot be measured now it is given as it is, now and ever after.
            self._known = (result, result)
            measured = self._call.streaming if is_stream(result) else self._call.read
            self._known = (result, measured(result))
        return self._known[1]


class BodyPull:
    """Each read of a response's body, by a caller that does not have it parsed.

    Nobody tells events apart then, nor whether the last one was among them: a body that was read to
    its end is complete.
    """

    __slots__ = ("_call", "_now_ns", "_recorder", "target")

    def __init__(self, call: Pulled, recorder: PhaseRecorder, now_ns: Callable[[], int]) -> None:
        self.target = call.target
        self._call = call
        self._recorder = recorder
        self._now_ns = now_ns

    def begin(self) -> None:
        """What the transport tells now is part of it."""
        self._call.is_pulling = True

    def returned(self) -> None:
        """The caller has control."""
        self._call.is_pulling = False

    def received(self, _: Any, /) -> None:
        """Some of the body, or all of it."""
        self._call.is_pulling = False
        self._recorder.part_received(self._now_ns())

    def completed(self) -> None:
        """All of the body has been read."""
        self._call.is_pulling = False
        self._call.end_body(StreamEnd.COMPLETE)

    def failed(self, error: BaseException) -> None:
        """The body cannot be read."""
        self._call.is_pulling = False
        self._call.fail(error)

    def closed(self, error: BaseException | None) -> None:
        """The caller has closed the response."""
        self._call.is_pulling = False
        self._call.close(error)


class EventPull:
    """Each pull of a call's stream."""

    __slots__ = ("_call", "_is_blind", "_now_ns", "_pulled_ns", "_reader", "_recorder", "target")

    def __init__(
        self, call: Pulled, reader: Reader, recorder: PhaseRecorder, now_ns: Callable[[], int]
    ) -> None:
        self.target = call.target
        self._call = call
        self._reader = reader
        self._recorder = recorder
        self._now_ns = now_ns
        self._pulled_ns: int | None = None
        self._is_blind = False

    def begin(self) -> None:
        """Runs per chunk."""
        self._call.is_pulling = True
        self._pulled_ns = None
        self._pulled_ns = self._now_ns()

    def returned(self) -> None:
        """The caller has control."""
        self._call.is_pulling = False

    def received(self, event: Any, /) -> None:
        """Runs per chunk."""
        self._call.is_pulling = False
        at_ns = self._now_ns()
        pulled_ns = self._pulled_ns
        try:
            content = self._reader.event(event, at_ns, self._recorder)
        except BaseException:
            self._is_blind = True
            if pulled_ns is not None:  # An event that cannot be read has come all the same.
                self._recorder.received(pulled_ns, at_ns, None)
            raise
        if pulled_ns is not None:
            self._recorder.received(pulled_ns, at_ns, content)

    def completed(self) -> None:
        """There is no event left; if the last one was not among them, the stream was cut short.

        Where an event could not be read nobody knows, and what ended well is taken for whole.
        """
        self._call.is_pulling = False
        is_whole = self._reader.is_terminated or self._is_blind
        self._call.end(StreamEnd.COMPLETE if is_whole else StreamEnd.INCOMPLETE, None)

    def failed(self, error: BaseException) -> None:
        """The stream has raised."""
        self._call.is_pulling = False
        self._call.fail(error)

    def closed(self, error: BaseException | None) -> None:
        """The caller has closed the stream."""
        self._call.is_pulling = False
        self._call.close(error)
