"""What decoding gives: spans that know where they came from, and what was set aside and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from llmlat_processor.model import Span


class UndecodableError(ValueError):
    """The bytes are not an export of spans at all; the message says what they are instead."""


class Origin(NamedTuple):
    """The envelope that a span arrived in, serialized, without any span in it.

    Attributes:
        resource: a ResourceSpans with everything but its scopes.
        scope: a ScopeSpans with everything but its spans.
    """

    resource: bytes
    scope: bytes


NO_BATCH: Final = -1
"""In place of a number in the journal."""


class WireSpan(Span):
    """A span that can be sent on: it remembers its envelope, and what of that is its burden.

    `borne` counts bytes that are held because of its envelope, if no span before had that one.
    Where a journal keeps what was received, `batch` is its number there, else `NO_BATCH`, and
    `position` the place of the span in the order in which that is decoded.
    """

    __slots__ = ("batch", "borne", "origin", "position")

    batch: int
    borne: int
    origin: Origin
    position: int


@dataclass(frozen=True, slots=True)
class Damaged:
    """Something that had to be set aside, so that the rest could be kept.

    Attributes:
        where: path of the field inside the export.
        reason: what is wrong with it, in words that its sender can act on.
        spans: how many spans were lost with it; 0 where none was, or nobody can tell.
    """

    where: str
    reason: str
    spans: int = 1

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Decoded:
    """The spans of one export in their order, and what was set aside.

    Attributes:
        spans: those that were kept.
        damaged: what was not.
        request: the export in protobuf, as it came, where it holds these very spans in this order
            and nothing else that would be set aside; empty where that would have to be made.
    """

    spans: list[WireSpan] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    request: bytes = b""

    def set_aside(self, where: str, reason: str, spans: int = 1) -> None:
        """Keep the books of one damaged part."""
        self.damaged.append(Damaged(where, reason, spans))

    @property
    def is_for_somebody(self) -> bool:
        """Whether there is anything in it to be taken over, decoded or not."""
        return bool(self.spans or self.request)

    @property
    def refused(self) -> int:
        """How many spans were set aside."""
        return sum(damaged.spans for damaged in self.damaged)
