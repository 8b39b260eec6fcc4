"""What receivers share, however spans come in: whom they give them to, what they count, tokens."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from llmlat_processor.wire import Decoded

REFUSED: Final = "damaged"
UNDECODABLE: Final = "undecodable"
TOO_LARGE: Final = "too_large"
UNAUTHORIZED: Final = "unauthorized"
UNFINISHED: Final = "unfinished"
"""Requests that never arrived whole: given up by who sent them, too slow, or broken off; over gRPC
also those that are too large, which its library refuses without a word to us."""

POSTPONED: Final = "postponed"
"""Requests that were asked to come again later."""

SIGNALS: Final = ("logs", "metrics")
"""Signals that nobody asked for. They are thanked for and dropped: an app sends all its signals
to one endpoint, and must not log errors because somebody watches its traces."""

Take = Callable[[Decoded], str]
"""Takes spans over for good and says nothing, or says why it cannot now."""

Read = Callable[[bytes], Decoded]
"""Reads a request in protobuf; raises UndecodableError where it is none."""

Ready = Callable[[], str]
"""Why there is no point in sending now; empty where there is. Must not block."""

_BEARER: Final = "bearer "


def always_ready() -> str:
    """Of who is ready from its start to its end."""
    return ""


class Counts:
    """How many of each kind, from several threads."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, kind: str, by: int = 1) -> None:
        """Count some more of a kind."""
        if by:
            with self._lock:
                self._counts[kind] += by

    def read(self) -> Mapping[str, int]:
        """All of them, as of now."""
        with self._lock:
            return dict(self._counts)


def is_let_in(token: str, authorization: str) -> bool:
    """Whether what a client shows as `authorization` is the token; any is, where none is set."""
    if not token:
        return True
    is_bearer = authorization[: len(_BEARER)].lower() == _BEARER
    shown = authorization[len(_BEARER) :].strip() if is_bearer else ""
    return hmac.compare_digest(shown.encode(), token.encode())
