"""What has arrived at the end of a pipeline, and waiting for it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from llmlat_semconv.spans import lane_span_name
from tests.integration.jaeger.lanes import is_ours
from tests.integration.jaeger.storage import Stored
from tests.llmlat_processor.sink import Sink

T = TypeVar("T")

_PATIENCE_S = 120


def until(seen: Callable[[], T], come: Callable[[], object]) -> T:
    """What is seen as soon as it is something; the last of it, when patience is at its end.

    Args:
        seen: looks.
        come: how far it is, which has an end; patience begins anew where that has changed.
    """
    last, deadline = come(), time.monotonic() + _PATIENCE_S
    while not (found := seen()) and time.monotonic() < deadline:
        time.sleep(0.1)
        if (now := come()) != last:
            last, deadline = now, time.monotonic() + _PATIENCE_S
    return found


def distinct(end: Sink) -> int:
    """How many spans a sink has; what came again is not counted."""
    return len({(span.trace_id, span.span_id) for _, _, span in list(end.spans)})


def traces(end: Sink) -> dict[bytes, list[Stored]]:
    """What a sink has, by trace."""
    found: dict[bytes, list[Stored]] = defaultdict(list)
    for of_resource, of_scope, span in list(end.spans):
        found[span.trace_id].append(Stored(span, of_scope.scope, of_resource.resource))
    return found


def lanes(spans: Iterable[Stored]) -> Counter[bytes]:
    """How often the root of each lane is there, by its id."""
    ours = [each.span for each in spans if is_ours(each)]
    return Counter(span.span_id for span in ours if span.name == lane_span_name())
