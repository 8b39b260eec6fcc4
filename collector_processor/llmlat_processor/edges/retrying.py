"""What is sent again, in which pieces, and until when; knows neither thread, clock nor network.

requests as one ──> taken ─────────────────────────────────> settled
      │  ^  │
      │  └──┴─ not now: the same after a pause, until it is given up
      ├─ too large: two halves of the requests, then of the spans of one, down to one span
      └─ refused: each request alone, since one of them may be at fault for all
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.edges.sending import NotNow, Outcome, Refused, Taken, TooLarge
from llmlat_processor.settings import Delivery
from llmlat_processor.wire import Request, halves

REJECTED: Final = "rejected by the destination"
REFUSED: Final = "refused by the destination"
TOO_LARGE: Final = "too large for the destination"
GIVEN_UP: Final = "given up"


@dataclass(frozen=True, slots=True)
class Piece:
    """What is sent at once.

    Attributes:
        content: its bytes.
        spans: how many spans are in it.
        whole: the requests that it is all of, or, where it is one, of which it may be a part.
    """

    content: bytes
    spans: int
    whole: Sequence[Request]


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one attempt.

    Attributes:
        sent: spans that the destination has taken over.
        dropped: spans that it never will.
        reason: why not.
        words: what it said.
        pause_s: how long to wait before the next attempt, in seconds.
        settled: requests of which nothing is left to be sent.
    """

    sent: int = 0
    dropped: int = 0
    reason: str = ""
    words: str = ""
    pause_s: float = 0
    settled: Sequence[Request] = ()


class Round:
    """Requests that are sent together, until each of their spans was taken or is given up."""

    def __init__(
        self,
        requests: Sequence[Request],
        delivery: Delivery,
        *,
        now_s: float,
        jitter: Callable[[], float],
        has_spans: bool = True,
    ) -> None:
        """Nothing was sent yet.

        Args:
            requests: at least one; as one they are not larger than a request may be.
            delivery: pauses, and when to give up.
            now_s: from any zero.
            jitter: from 0 to 1; pauses last between half of and the whole of what they may.
            has_spans: whether a request can be halved between two spans.
        """
        self._delivery = delivery
        self._jitter = jitter
        self._has_spans = has_spans
        self._pieces = deque([_joined(requests)])
        self._begin(now_s)

    @property
    def piece(self) -> Piece | None:
        """What is to be sent next; None at the end."""
        return self._pieces[0] if self._pieces else None

    @property
    def spans(self) -> int:
        """How many are still to be sent."""
        return sum(piece.spans for piece in self._pieces)

    def answered(self, outcome: Outcome, now_s: float) -> Step:
        """Draw the conclusion from an attempt to send the piece that was next."""
        if isinstance(outcome, NotNow):
            return self._later(outcome, now_s)
        piece = self._pieces.popleft()
        self._begin(now_s)
        if isinstance(outcome, Taken):
            rejected = min(outcome.rejected, piece.spans)
            reason = REJECTED if rejected else ""
            sent = piece.spans - rejected
            return Step(sent, rejected, reason, outcome.message, settled=self._settled(piece))
        parts = self._parts(piece, outcome)
        self._pieces.extendleft(reversed(parts))
        if parts:
            return Step(words=outcome.words)
        return self._dropped(piece, REFUSED if isinstance(outcome, Refused) else TOO_LARGE, outcome)

    def _begin(self, now_s: float) -> None:
        """Each piece has its time and its pauses: that one was answered shows that it goes on."""
        self._gives_up_s = now_s + self._delivery.give_up_s
        self._pause_s = self._delivery.first_retry_s

    def _later(self, outcome: NotNow, now_s: float) -> Step:
        wait_s = max(self._pause_s * (0.5 + self._jitter() / 2), outcome.after_s)
        if now_s + wait_s > self._gives_up_s:
            piece = self._pieces.popleft()
            self._begin(now_s)
            return self._dropped(piece, GIVEN_UP, outcome)
        self._pause_s = min(2 * self._pause_s, self._delivery.longest_retry_s)
        return Step(words=outcome.words, pause_s=wait_s)

    def _parts(self, piece: Piece, outcome: Refused | TooLarge) -> Sequence[Piece]:
        """What to send in place of a piece; nothing where that cannot help."""
        requests = piece.whole
        if isinstance(outcome, Refused):
            alone = len(requests) > 1 and not outcome.is_about_us
            return [_joined((request,)) for request in requests] if alone else ()
        if len(requests) > 1:
            middle = len(requests) // 2
            return _joined(requests[:middle]), _joined(requests[middle:])
        parts = halves(Request(piece.content, piece.spans)) if self._has_spans else None
        return [Piece(part.content, part.spans, requests) for part in parts or ()]

    def _dropped(self, piece: Piece, reason: str, outcome: NotNow | Refused | TooLarge) -> Step:
        settled = self._settled(piece)
        return Step(0, piece.spans, reason, outcome.words, settled=settled)

    def _settled(self, piece: Piece) -> Sequence[Request]:
        """The requests of a piece that is done, unless it was a part, and others are to come."""
        is_last = not self._pieces or self._pieces[0].whole is not piece.whole
        return piece.whole if is_last else ()


def _joined(requests: Sequence[Request]) -> Piece:
    content = b"".join(request.content for request in requests)
    return Piece(content, sum(request.spans for request in requests), requests)
