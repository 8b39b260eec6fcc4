"""A passage to a backend: every byte that goes through is known afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import grpc  # type: ignore[import-untyped]

from tests.fuzz.protobuf_fields import split
from tests.integration.collector.collectors import EXPORT, PATIENCE_S
from tests.llmlat_processor.sink import Sink

_RESOURCE_SPANS: Final = 1
_SCOPE_SPANS: Final = 2
_SPANS: Final = 2


class Passage(Sink):
    """A sink that takes what the backend behind it has taken."""

    def __init__(self, backend: str) -> None:
        """Listen; nothing is connected yet."""
        self._channel = grpc.insecure_channel(backend)
        self._pass_on = self._channel.unary_unary(EXPORT)
        super().__init__()

    def take(self, content: bytes) -> None:
        """Pass it on first: whoever sends hears of what the backend does not take."""
        self._pass_on(content, timeout=PATIENCE_S, wait_for_ready=True)
        super().take(content)

    def stop(self) -> None:
        """Take no more, and leave no connection behind."""
        super().stop()
        self._channel.close()


@contextmanager
def passage(backend: str) -> Iterator[Passage]:
    """A passage for the time of a test."""
    made = Passage(backend)
    try:
        yield made
    finally:
        made.stop()


def spans_as_bytes(requests: Iterable[bytes]) -> Counter[bytes]:
    """Each span of export requests as it is on the wire, and how often."""
    found: Counter[bytes] = Counter()
    for request in requests:
        for of_resource in _within(request, _RESOURCE_SPANS):
            for of_scope in _within(of_resource, _SCOPE_SPANS):
                found.update(_within(of_scope, _SPANS))
    return found


def _within(message: bytes, number: int) -> list[bytes]:
    fields = split(message)
    assert fields is not None
    return [field.value for field in fields if field.number == number]
