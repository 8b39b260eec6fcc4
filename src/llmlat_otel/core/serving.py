"""Serving: what is known of a request that an application answers, and of what it asks upstream."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from llmlat_otel.core.recording import PhaseInterval
from llmlat_semconv.phases import Phase

# A gateway's time. Upstream is another span's to tell: the call's that the gateway makes there.
#
#   received                                                                   last byte
#   |     admission     |  route  |          (upstream)              |  relay  |
#                    admitted   upstream begins         last upstream event
#
# An event that has come is held until the next bytes go down that were handed over after it came.
#
#   upstream      e1   e2            e3
#   downstream         [   e1 e2   ]     [ e3 ]       sent = the server's `send` has returned
#   hold          ────────────────>    e1
#                      ───────────>    e2
#                                    ─────────> e3

# By names of their own: before Python 3.12 it takes 0.2 µs to look one up in its class.
_ADMISSION: Final = Phase.ADMISSION
_ROUTE: Final = Phase.ROUTE
_RELAY: Final = Phase.RELAY

Waiting = tuple[int, int, int]
"""Events that have come and were not sent down: how many, the sum of their instants, the first.

It is replaced as a whole: another thread may read upstream, and one event may then be missed, but
no number is ever made of two halves.
"""

_NONE: Final[Waiting] = (0, 0, 0)

NO_BYTES: Final[Waiting] = (0, 0, -1)
"""A message that ends a response and has nothing of its body."""


class Served:
    """One request that is being served. Its methods are called under the guard.

    All instants are monotonic nanoseconds. Once it is over nothing is noted any more: what goes on
    after the last byte is none of the request's.

    Args:
        received_ns: When the request was received.
        scope: What the server says of it; forgotten when it is over.
        is_heard: Whether anything is made of what it is told.

    Attributes:
        traceparent: The header that it came with; a gateway may pass it on as it is.
        trace_id: Of its span; 0 where that is not known.
        route: The template of its path; None where nobody has told.
    """

    __slots__ = (
        "_admitted_ns",
        "_begun_ns",
        "_ended_ns",
        "_event_ns",
        "_first_begun_ns",
        "_has_held",
        "_hold_max_ns",
        "_hold_sum_ns",
        "_is_apps_own",
        "_last_sent_ns",
        "_mounts",
        "_timed",
        "_waiting",
        "is_heard",
        "is_over",
        "received_ns",
        "route",
        "scope",
        "trace_id",
        "traceparent",
    )

    def __init__(
        self, received_ns: int, scope: Mapping[str, object] | None = None, *, is_heard: bool = True
    ) -> None:
        self.received_ns = received_ns
        self.scope = scope
        self.is_heard = is_heard
        self.is_over = False
        self.traceparent: str | None = None
        self.trace_id = 0
        self.route: str | None = None
        self._admitted_ns: int | None = None
        self._first_begun_ns: int | None = None
        self._begun_ns = 0
        self._event_ns = 0
        self._ended_ns: int | None = None
        self._waiting = _NONE
        self._has_held = False
        self._hold_sum_ns = 0
        self._hold_max_ns = 0
        self._is_apps_own = False
        self._last_sent_ns: int | None = None
        self._mounts = ""
        self._timed: tuple[Phase, ...] = ()

    # What the transport upstream tells

    def upstream_begins(self, at_ns: int) -> None:
        """A request to a model is handed to its transport; a retry is one more."""
        if self.is_over:
            return
        if self._first_begun_ns is None:
            self._first_begun_ns = at_ns
        self._begun_ns = at_ns
        self._waiting = _NONE  # It is another answer that goes down, or will be.

    def upstream_event(self, at_ns: int) -> None:
        """Some of a response from upstream has come."""
        if self.is_over:
            return
        self._event_ns = at_ns
        count, total, first_ns = self._waiting
        self._waiting = (count + 1, total + at_ns, first_ns or at_ns)

    def upstream_ended(self, at_ns: int) -> None:
        """A response from upstream is over: its last event came at that instant."""
        if not self.is_over and (self._ended_ns is None or at_ns > self._ended_ns):
            self._ended_ns = at_ns  # Of calls side by side the one that lost may be told of last.

    # What the application does

    def is_apps_own(self) -> None:
        """An agent, a tool or a retrieval begins: the request is an application's, no gateway's."""
        self._is_apps_own = True

    def timed(self, interval: PhaseInterval) -> None:
        """The application has timed a phase itself: ours is not written beside it."""
        if self.is_over:
            return
        self._timed = (*self._timed, interval.phase)
        if interval.phase is _ADMISSION:
            self._admitted_ns = interval.end_ns

    # What the framework does

    def is_asked_by(self, scope: Mapping[str, object]) -> bool:
        """Whether an application that is called now is asked for this request, and no other one.

        Of what nobody hears it is not known when the last byte is out, and the server may begin the
        connection's next request while this one's background runs, and in its context.
        """
        asked = self.scope
        if self.is_heard or asked is None:
            return True
        return asked is scope or asked["headers"] is scope["headers"]

    def mounted(self, path: str) -> None:
        """The request goes on below a path."""
        self._mounts += path

    def routed(self, path: str) -> None:
        """A route is chosen, by its template; it lies below what the request has come through."""
        self.route = self._mounts + path

    def admitted(self, at_ns: int) -> None:
        """The request has come through one more door; the last one counts."""
        if not self.is_over and _ADMISSION not in self._timed:
            self._admitted_ns = at_ns

    # What goes down

    def sends(self) -> Waiting:
        """Bytes are handed to the server: the events that they, or those before, are made of."""
        waiting, self._waiting = self._waiting, _NONE
        return waiting

    def sent(self, waiting: Waiting, at_ns: int) -> None:
        """They were sent."""
        self._last_sent_ns = at_ns
        count, total, first_ns = waiting
        if count:
            self._has_held = True
            self._hold_sum_ns += count * at_ns - total
            longest_ns = at_ns - first_ns
            if longest_ns > self._hold_max_ns:  # noqa: PLR1730 - a tenth of what a chunk takes
                self._hold_max_ns = longest_ns

    # What there is to say

    @property
    def is_gateways(self) -> bool:
        """Whether it forwarded: it asked a model itself, and is no application's."""
        return self._first_begun_ns is not None and not self._is_apps_own

    @property
    def hold_ns(self) -> tuple[int, int] | None:
        """How long events were held, summed, and the longest; None if none was sent on."""
        return (self._hold_sum_ns, self._hold_max_ns) if self._has_held else None

    def before_the_answer(self) -> tuple[PhaseInterval, ...]:
        """Its phases on the way up; those whose edges are not both known are left out."""
        begun_ns, admitted_ns = self._first_begun_ns, self._admitted_ns
        if admitted_ns is None or begun_ns is None:
            return ()
        admission = self._phase(_ADMISSION, self.received_ns, admitted_ns)
        return admission + self._phase(_ROUTE, admitted_ns, begun_ns)

    def after_the_answer(self, end_ns: int, *, is_truncated: bool) -> tuple[PhaseInterval, ...]:
        """Its phase on the way down; none while anything more was awaited from upstream.

        What a server sends after the last byte of the body, to say that it was the last, nobody
        waits for: many clients have gone when a stream has told them of its end.

        Args:
            end_ns: When the response was over, or was given up.
            is_truncated: Whether it was given up.
        """
        ended_ns = self._ended_ns
        if self._last_sent_ns is not None and not is_truncated:
            end_ns = self._last_sent_ns
        if ended_ns is None or ended_ns < max(self._begun_ns, self._event_ns):
            return ()
        return self._phase(_RELAY, ended_ns, end_ns, is_truncated=is_truncated)

    def _phase(
        self, phase: Phase, start_ns: int, end_ns: int, *, is_truncated: bool = False
    ) -> tuple[PhaseInterval, ...]:
        """None that has taken no time, or that the application has timed itself."""
        if phase in self._timed or end_ns <= start_ns:
            return ()
        return (PhaseInterval(phase, start_ns, end_ns, 0, is_truncated),)


serving: ContextVar[Served | None] = ContextVar("llmlat-serving", default=None)
"""The request that this thread or task answers, or once answered. It is set back by value."""


def request_underway() -> Served | None:
    """The request that this thread or task answers, unless its last byte is out."""
    served = serving.get()
    return None if served is None or served.is_over else served


def request_heard() -> Served | None:
    """The same, if anything is made of what it is told."""
    served = serving.get()
    return None if served is None or served.is_over or not served.is_heard else served
