"""One attempt to send: what is sent, who makes it, and what it may come to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias


class Signal(Enum):
    """What is sent: each kind has a service and a path of its own."""

    TRACES = "traces"
    METRICS = "metrics"

    @property
    def method(self) -> str:
        """Its method over gRPC."""
        return f"/opentelemetry.proto.collector.{_SERVICES[self]}Service/Export"

    @property
    def path(self) -> str:
        """Its path over HTTP."""
        return f"/v1/{self.value}"


_SERVICES: Final = {Signal.TRACES: "trace.v1.Trace", Signal.METRICS: "metrics.v1.Metrics"}


@dataclass(frozen=True, slots=True)
class Taken:
    """The destination has taken it over.

    Attributes:
        rejected: how many spans of it were not taken, for good.
        message: what the destination says to that; empty for nothing.
    """

    rejected: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class NotNow:
    """It was not taken, and to send it again can help.

    Attributes:
        words: why, for a person.
        after_s: when at the earliest, as the destination asked for; 0 where it did not.
    """

    words: str
    after_s: float = 0


@dataclass(frozen=True, slots=True)
class TooLarge:
    """It is more than the destination takes at once.

    Attributes:
        words: why, for a person.
    """

    words: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It was not taken, and to send it again does not help.

    Attributes:
        words: why, for a person, and what to do.
        is_about_us: whether anything else would have been refused as well: who we are and where
            we knock is at fault, not what is in the request.
    """

    words: str
    is_about_us: bool = False


Outcome: TypeAlias = Taken | NotNow | TooLarge | Refused


class Sender(Protocol):
    """Speaks with one destination. Only one thread sends; all else may come from any other."""

    @property
    def destination(self) -> str:
        """Where it sends to, for a person."""

    def send(self, content: bytes, timeout_s: float) -> Outcome:
        """Make one attempt; raises nothing that the destination or the network is to blame for."""

    def is_reachable(self, timeout_s: float) -> bool:
        """Whether somebody answers there; waits at most so long."""

    def cancel(self) -> None:
        """End the attempt in flight, if there is one, and make no other."""

    def close(self) -> None:
        """Leave no connection behind."""
