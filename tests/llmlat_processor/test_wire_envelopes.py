"""What held spans share, and what the bounds of memory count of it."""

from __future__ import annotations

import pytest

from llmlat_processor.model import Resource, Span
from llmlat_processor.service.doors import Doors
from llmlat_processor.service.intake import Intake
from llmlat_processor.settings import INLINE, Listener
from llmlat_processor.window import SPAN_OVERHEAD, Limits, Window
from llmlat_processor.wire import WireSpan, decode, envelopes
from llmlat_processor.wire.envelopes import DECODED, MOST_SHARED_BYTES, SMALL_BYTES
from tests.llmlat_processor.otlp import request, span


def received(resource: str, count: int = 1) -> list[WireSpan]:
    spans = [span(number) for number in range(1, count + 1)]
    return decode(request(spans, {"resource": resource}).SerializeToString()).spans


def test_requests_that_repeat_their_resource_share_it() -> None:
    (one,), (other,) = received("a" * 600), received("a" * 600)

    assert other.origin is one.origin
    assert other.resource is one.resource
    assert other.borne == 0


def test_a_resource_that_nobody_had_counts_for_the_spans_that_bring_it() -> None:
    spans = received("b" * 100_000, count=3)

    size = sum(map(len, spans[0].origin))
    assert size * DECODED <= sum(each.borne for each in spans) <= size * DECODED + len(spans)


def test_a_small_one_is_in_the_account_of_each_span() -> None:
    (one,) = received("c" * (SMALL_BYTES // 2))

    assert one.borne == 0


def test_a_large_one_stays_no_longer_than_its_spans() -> None:
    remembered = envelopes._remembered
    remembered.cache_clear()

    (one,), (other,) = received("d" * MOST_SHARED_BYTES), received("d" * MOST_SHARED_BYTES)

    assert other.origin is not one.origin
    assert remembered.cache_info().currsize == 0


def test_what_is_held_is_bounded_with_all_that_spans_came_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One small span a request and a resource of its own for each held 200 times the bound."""
    held: list[Window] = []
    made = Window.__init__

    def kept(window: Window, limits: Limits, size_of: object) -> None:
        made(window, limits, size_of)  # type: ignore[arg-type]
        held.append(window)

    monkeypatch.setattr(Window, "__init__", kept)
    intake = Intake(Doors(Listener("127.0.0.1:0")), INLINE, lambda _released, _window: None)
    intake.stop()
    (window,) = held
    (one,) = received("e" * 100_000)

    window.feed(one, 0)

    assert window.held_bytes > DECODED * 100_000


def test_a_span_that_never_was_on_the_wire_is_its_own_account() -> None:
    window = Window()
    resource = Resource({}, service="", process="", domain="", weak=True)
    made = Span(bytes(16), bytes(8), b"", "made", 1, 0, 1, resource)

    window.feed(made, 0)

    assert window.held_bytes == SPAN_OVERHEAD
