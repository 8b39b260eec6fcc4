"""A window fed with spans in a few words, for tests."""

from __future__ import annotations

from llmlat_processor.model import INTERNAL, Resource, Span
from llmlat_processor.window import SECOND_NS, Released, Why, Window
from llmlat_processor.wire import WireSpan, as_sent

APP = Resource({}, service="app", process="app", domain="host", weak=False)
ENGINE = Resource({}, service="engine", process="engine", domain="host", weak=False)


def span(
    number: int, parent: int = 0, *, trace: int = 1, kind: int = INTERNAL, **more: object
) -> WireSpan:
    made = Span(
        trace.to_bytes(16, "big"),
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        f"span {number}",
        kind,
        1,
        2,
        more.pop("resource", APP),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )
    return as_sent(made)


def feed(window: Window, *spans: Span, at_s: float = 0) -> list[Released]:
    return [released for one in spans for released in window.feed(one, round(at_s * SECOND_NS))]


def expire(window: Window, at_s: float) -> list[tuple[Why, list[int]]]:
    return summary(window.expire(round(at_s * SECOND_NS)))


def summary(released: object) -> list[tuple[Why, list[int]]]:
    return [(one.why, [int.from_bytes(s.span_id, "big") for s in one.spans]) for one in released]  # type: ignore[attr-defined]
