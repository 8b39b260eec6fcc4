"""Spans in, finished traces out: for whoever looks at a copy of what is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llmlat_processor.edges.receiver import REFUSED
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.service.doors import Doors
from llmlat_processor.service.explaining import UNEXPLAINED, Explain, attempted, explain_now
from llmlat_processor.service.intake import Intake
from llmlat_processor.settings import Listener, Settings
from llmlat_processor.window import NEVER_HELD, WITHOUT_ROOM, Released, Why, Window

OnTrace = Callable[[ExplainedTrace], None]


@dataclass(frozen=True, slots=True)
class Books:
    """Every span accounted for: received = explained + late + dropped + held + waiting.

    Attributes:
        received: spans that were accepted.
        explained: spans of traces that were handed on.
        traces: how many traces that were.
        late: spans that came after their trace was handed on, or came again.
        dropped: spans that were not kept, by reason.
        held: spans of traces that are not complete yet.
        waiting: spans that nobody has looked at yet.
        refused: spans that were damaged; their exporter was told.
        other: requests that held no spans to look at, by kind.
    """

    received: int
    explained: int
    traces: int
    late: int
    dropped: Mapping[str, int]
    held: int
    waiting: int
    refused: int
    other: Mapping[str, int]

    def __str__(self) -> str:
        counts = {
            "late": self.late,
            **{f"dropped ({why})": count for why, count in self.dropped.items()},
            "held": self.held,
            "waiting": self.waiting,
            "damaged": self.refused,
            **{f"{kind} requests": count for kind, count in self.other.items()},
        }
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        return f"{self.received} spans received: {self.explained} in {self.traces} traces{rest}"


def watch(listen: str, on_trace: OnTrace, *, settings: Settings | None = None) -> Watcher:
    """Receive OTLP at an address and hand on each finished trace.

    Args:
        listen: `host:port`; no host is loopback, port 0 any free one.
        on_trace: called from one thread; what it raises ends the watch, and `stop` raises it.
        settings: limits; None takes the defaults.

    Raises:
        OSError: the address cannot be had; the message says what to do.
        ValueError: `listen` is not a host and a port.
    """
    return Watcher(listen, on_trace, settings or Settings(), process)


class Watcher:
    """A receiver at work; made by `watch`."""

    def __init__(
        self, listen: str, on_trace: OnTrace, settings: Settings, explain: Explain
    ) -> None:
        self._on_trace = on_trace
        self._explain = explain
        self._traces = 0
        self._unexplained = 0
        self._intake = Intake(Doors(Listener(listen)), settings, self._hand_on)

    @property
    def address(self) -> str:
        """Host and port that it listens on."""
        return self._intake.addresses[0]

    def stop(self) -> None:
        """Take no more, hand on all that is held, and end; raises what `on_trace` has raised."""
        self._intake.stop()

    def books(self) -> Books:
        """What became of every span so far."""
        window, traces, unexplained = self._intake.accounts, self._traces, self._unexplained
        received = self._intake.accepted
        other = dict(self._intake.counts)
        without_room = {why.value: window.released.get(why, 0) for why in WITHOUT_ROOM}
        dropped = {**without_room, UNEXPLAINED: unexplained}
        return Books(
            received=received,
            explained=sum(n for why, n in window.released.items() if why not in NEVER_HELD)
            - unexplained,
            traces=traces,
            late=sum(window.released.get(why, 0) for why in (Why.LATE, Why.REPEATED)),
            dropped={why: count for why, count in dropped.items() if count},
            held=window.held,
            waiting=received - window.received,
            refused=other.pop(REFUSED, 0),
            other=other,
        )

    def _hand_on(self, released: Sequence[Released], _window: Window) -> None:
        for trace in released:
            if trace.why in NEVER_HELD or trace.why is Why.REVISED:
                continue  # its trace is drawn without this span, and the books say so
            explained = attempted(self._explained, trace.spans)
            if explained is None:
                self._unexplained += len(trace.spans)
            else:
                self._traces += 1
                self._on_trace(explained)

    def _explained(self, spans: Sequence[Span]) -> ExplainedTrace:
        return explain_now(self._explain, spans)
