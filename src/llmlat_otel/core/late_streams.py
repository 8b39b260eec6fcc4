"""Late streams: given out before anything is asked of the peer, which their first pull does."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from llmlat_otel.core.call import Call, MakeReader, may_begin
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.pulls import EventPull, Reader
from llmlat_otel.core.streams import is_stream, stream
from llmlat_otel.core.wrapping import Sight, Wrapper, run_in

# A generator runs when it is first asked for something, and what it runs is the call:
#
#   caller    chat(stream=True) ── a generator ··· next ──────────────┐   ··· next ──┐
#   call                                           begins, is made ───┴─ event ······┴─ event
#
# One that is never pulled has asked for nothing: there was no call.


def timed_when_pulled(target: str, make_reader: MakeReader) -> Wrapper:
    """A wrapper that times the stream that a function gives out, from its first pull on."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        made = partial(_measured, target, partial(make_reader, instance, kwargs))
        return run_in(guarded(target, Sight, target, made), wrapped, args, kwargs)

    return wrapper


def _measured(target: str, make_reader: Callable[[bool], Reader], result: Any) -> Any:
    if not is_stream(result):
        return result
    pull = _LatePull(target, make_reader)
    measured = stream(result, pull)
    pull.stream = weakref.ref(measured)
    return measured


class _StreamCall(Call):
    """A call that begins as the stream is first pulled that was given out before."""

    __slots__ = ()

    def begin_stream(self, measured: object) -> EventPull:
        """The library runs; what measures it."""
        self._awaits_body = True
        self.is_streaming = True
        self._watch(measured, None)
        self.begin()
        return EventPull(self, self._reader, self._recorder, self._runtime.clock.now_ns)

    def stream_begun(self) -> bool:
        """The first pull is over; whether anybody hears of the others."""
        self.returned()
        self._open()
        return self.is_heard

    def forgo(self) -> None:
        """Nothing has been asked for."""
        self.returned()
        self._forsake()


class _LatePull:
    """Each pull of a late stream.

    Args:
        target: What is being timed, for the count of faults.
        make_reader: Makes the call's reader, given whether visible reasoning counts as content.

    Attributes:
        stream: What is pulled.
    """

    __slots__ = ("_call", "_is_begun", "_make_reader", "_pull", "stream", "target")

    def __init__(self, target: str, make_reader: Callable[[bool], Reader]) -> None:
        self.target = target
        self.stream: Callable[[], object] = lambda: None
        self._make_reader = make_reader
        self._is_begun = False
        self._call: _StreamCall | None = None
        self._pull: EventPull | None = None

    def begin(self) -> None:
        """Runs per chunk."""
        if not self._is_begun:
            self._is_begun = True
            if may_begin():
                self._begin()
        if self._pull is not None:
            self._pull.begin()

    def _begin(self) -> None:
        call = _StreamCall(self.target, self._make_reader)
        del self._make_reader  # It holds what was asked.
        self._pull = call.begin_stream(self.stream())
        self._call = call

    def _first_over(self) -> None:
        """The call is made, or has come to nothing: what is done from here on is the caller's."""
        call, self._call = self._call, None
        if call is not None and not call.stream_begun():
            self._pull = None

    def returned(self) -> None:
        """The caller has control."""
        if self._pull is not None:
            self._pull.returned()

    def received(self, event: Any, /) -> None:
        """Runs per chunk."""
        if self._call is not None:
            guarded(self.target, self._first_over)
        if self._pull is not None:
            self._pull.received(event)

    def completed(self) -> None:
        """There is no event left."""
        guarded(self.target, self._first_over)
        if self._pull is not None:
            self._pull.completed()

    def failed(self, error: BaseException) -> None:
        """The stream has raised."""
        guarded(self.target, self._first_over)
        if self._pull is not None:
            self._pull.failed(error)

    def closed(self, error: BaseException | None) -> None:
        """The caller has closed the stream; one that was never pulled has asked for nothing."""
        call, self._call = self._call, None
        if call is not None:
            self._pull = None
            call.forgo()
        elif self._pull is not None:
            self._pull.closed(error)
