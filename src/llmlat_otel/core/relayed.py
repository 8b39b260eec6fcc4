"""Recorders of what an application asks of a model for a request that it serves itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor, PhaseInterval, Recording
from llmlat_otel.core.serving import Served
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import ContentKind, StreamEnd

# A gateway's view of its upstream is a client's, with fewer edges: it tells neither the last byte
# of its request from the first, nor content from what comes before it.
#
#   client   |prepare|pool_wait|connect|  send  |  wait  |first_content|    stream    |finalize|
#   gateway          |pool_wait|connect|     upstream    |      upstream_stream       |finalize|

_AT_GATEWAY: Final = {
    Phase.SEND: Phase.UPSTREAM,
    Phase.WAIT: Phase.UPSTREAM,
    Phase.FIRST_CONTENT: Phase.UPSTREAM_STREAM,
    Phase.STREAM: Phase.UPSTREAM_STREAM,
}


class ServedRecorder(PhaseRecorder):
    """Records a call, and tells the request that it is made for what comes from upstream.

    Args:
        served: The request.
        start_ns: See `PhaseRecorder`.
        anchor: See `PhaseRecorder`.
        stall_threshold_ns: See `PhaseRecorder`.
    """

    __slots__ = ("_served",)

    def __init__(
        self, served: Served, start_ns: int, anchor: Anchor, stall_threshold_ns: int
    ) -> None:
        super().__init__(start_ns, anchor, stall_threshold_ns)
        self._served = served

    def begin_attempt(self, at_ns: int) -> int:
        """A request is handed to the transport.

        The request's upstream was chosen when the call began: what a library prepares is the
        call's own, and no part of `route`.
        """
        number = super().begin_attempt(at_ns)
        self._served.upstream_begins(self.start_ns if number == 1 else at_ns)
        return number

    def received(self, pulled_ns: int, at_ns: int, content: ContentKind | None) -> None:
        """An event is handed to the caller."""
        super().received(pulled_ns, at_ns, content)
        self._served.upstream_event(at_ns)

    def part_received(self, at_ns: int) -> None:
        """Some of the body is handed to a caller that reads it as it is."""
        self.body_received(at_ns)
        self._served.upstream_event(at_ns)

    def finish(
        self,
        end_ns: int,
        stream_end: StreamEnd | None = None,
        error_type: str | None = None,
        **how: bool,
    ) -> Recording:
        """The call is over; see `PhaseRecorder`."""
        last_ns = self.last_arrival_ns
        if last_ns is not None:
            self._served.upstream_ended(last_ns)
        return super().finish(end_ns, stream_end, error_type, **how)


class UpstreamRecorder(ServedRecorder):
    """The same, of what is passed on as it is: the account is a gateway's."""

    __slots__ = ()

    def finish(
        self,
        end_ns: int,
        stream_end: StreamEnd | None = None,
        error_type: str | None = None,
        **how: bool,
    ) -> Recording:
        """The call is over; see `PhaseRecorder`."""
        made = super().finish(end_ns, stream_end, error_type, **how)
        phases = tuple(_at_gateway(made.phases))
        in_phases_ns = sum(each.end_ns - each.start_ns for each in phases)
        return made._replace(phases=phases, gap_ns=made.end_ns - made.start_ns - in_phases_ns)


def _at_gateway(phases: Iterable[PhaseInterval]) -> Iterator[PhaseInterval]:
    """A client's phases as a gateway's: what has one name now is one, and it prepares nothing."""
    before: PhaseInterval | None = None
    for each in phases:
        if each.phase is Phase.PREPARE:
            continue
        phase = _AT_GATEWAY.get(each.phase, each.phase)
        if before is not None and before.phase is phase and before.end_ns == each.start_ns:
            before = each._replace(phase=phase, start_ns=before.start_ns)
            continue
        if before is not None:
            yield before
        before = each._replace(phase=phase)
    if before is not None:
        yield before
