"""When to look at which trace again: a heap, and no more of it than there are traces."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Final, Protocol

_STALE: Final = 1_000


class Looked(Protocol):
    """What is looked at: at `look_ns`, and no more at what was said before."""

    look_ns: int


Find = Callable[[bytes], "Looked | None"]


class Looks:
    """Traces by when they are to be looked at."""

    def __init__(self, find: Find) -> None:
        """Nothing yet; `find` gives what there is of a trace."""
        self._find = find
        self._heap: list[tuple[int, bytes]] = []
        self._most = _STALE

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, look_ns: int, trace_id: bytes, looked: Looked) -> None:
        """Look at a trace then, and not when it was to be before."""
        looked.look_ns = look_ns
        heapq.heappush(self._heap, (look_ns, trace_id))

    def due(self, now_ns: int) -> Iterator[bytes]:
        """The traces to look at now, each as often as was asked for; they may be asked for anew."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            look_ns, trace_id = heapq.heappop(heap)
            if self._is_awaited(look_ns, trace_id):
                yield trace_id

    def all(self) -> list[bytes]:
        """All traces that are to be looked at, in the order of that."""
        return [look[1] for look in sorted(self._heap) if self._is_awaited(*look)]

    def sweep(self) -> None:
        """Forget what is looked at no more, where that is most of it."""
        if len(self._heap) > self._most:
            self._heap = [look for look in self._heap if self._is_awaited(*look)]
            heapq.heapify(self._heap)
            self._most = 2 * len(self._heap) + _STALE

    def _is_awaited(self, look_ns: int, trace_id: bytes) -> bool:
        found = self._find(trace_id)
        return found is not None and found.look_ns == look_ns
