"""Where things are sent to: spans, what is derived of them, and metrics, each with its exporter.

A way out that is full closes the door: what is bounded is what is in the house.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Final

from llmlat_processor.edges.exporter import Counts, Exporter
from llmlat_processor.settings import Deployment
from llmlat_processor.wire import Request

SPANS: Final = "spans"
DERIVED: Final = "derived"

Settled = Callable[[Sequence[Request]], None]


class Destinations:
    """The exporters of one processor, from the moment it is made."""

    def __init__(self, deployment: Deployment, settled: Settled) -> None:
        """Nothing is connected yet.

        Args:
            deployment: where to.
            settled: is told of requests that have had their end.
        """
        named = {SPANS: deployment.spans, DERIVED: deployment.derived}
        self._exporters: dict[str, Exporter] = {}
        self._drains_s = {name: one.delivery.drain_s for name, one in named.items() if one}
        try:
            for name, destination in named.items():
                if destination is not None:
                    self._exporters[name] = Exporter(destination, settled=settled)
        except BaseException:
            self.stop(grace_s=0)
            raise

    @property
    def work(self) -> Sequence[Future[None]]:
        """Ends when an exporter does."""
        return [exporter.work for exporter in self._exporters.values()]

    @property
    def has_room(self) -> bool:
        """Whether more should be accepted from outside: lanes that are apart keep no span out."""
        first = self._exporters.get(SPANS) or self._exporters[DERIVED]
        return first.has_room

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        return any(exporter.has_ended for exporter in self._exporters.values())

    @property
    def counts(self) -> Mapping[str, Counts]:
        """What became of every span so far, by destination."""
        return {name: exporter.counts for name, exporter in self._exporters.items()}

    def names(self) -> Mapping[str, str]:
        """Where each of them sends to."""
        return {name: exporter.destination for name, exporter in self._exporters.items()}

    def silent(self, timeout_s: float) -> Sequence[str]:
        """Those where nobody answers; waits so long for each."""
        exporters = self._exporters.values()
        return [one.destination for one in exporters if not one.is_reachable(timeout_s)]

    def put(self, requests: Sequence[Request]) -> None:
        """Send spans, or in a tap what there is to be sent."""
        exporter = self._exporters.get(SPANS) or self._exporters[DERIVED]
        for request in requests:
            exporter.put(request)

    def put_derived(self, requests: Sequence[Request]) -> None:
        """Send what was made here; beside spans it is dropped where its way is full."""
        exporter = self._exporters.get(DERIVED)
        for request in requests:
            if exporter is not None:
                exporter.put(request, may_drop=SPANS in self._exporters)

    def stop(self, grace_s: float | None = None) -> None:
        """Send what there is, as long as that may take for one of them, and end.

        Args:
            grace_s: how long that is, in seconds; None is what was set of each.
        """
        began_s = time.monotonic()
        with ExitStack() as stack:  # one that fails keeps no other from its end
            for name, exporter in self._exporters.items():
                whole_s = self._drains_s[name] if grace_s is None else grace_s
                stack.push(partial(_end, exporter, began_s + whole_s))


def _end(exporter: Exporter, until_s: float, fault: type[BaseException] | None, *_: object) -> None:
    """All send until then, whoever is waited for first; who asks twice does not want to wait."""
    left_s = 0 if fault is KeyboardInterrupt else until_s - time.monotonic()
    exporter.stop(max(0.0, left_s))
