"""Plain traces of extreme shapes, as aligned traces: what `critical_paths` alone gets.

wide   root ├──────────────────────────────┤      deep   ├──────────────┤
             ├──────┤  ├──────┤  ├──────┤                  ├────────────┤
             8 µs every 10 µs, all of them                  ├──────────┤
             on the path                                     child i = [i, 1,000,000 - i] µs
"""

from __future__ import annotations

from typing import Final

from llmlat_processor.model import INTERNAL, AlignedTrace, Assumptions, Resource, Span
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble

_US: Final = 1_000
_START_NS: Final = 1_700_000_000 * 10**9
_TRACE_ID: Final = b"\x01" * 16
_RESOURCE: Final = Resource({}, service="service", process="process", domain="clock", weak=False)


def wide(size: int) -> AlignedTrace:
    """A root with sequential children, `size` spans in all."""
    children = [_span(i + 1, 1, 10 * i, 10 * i + 8) for i in range(1, size)]
    return _aligned([_span(1, 0, 0, 10 * size + 10), *children])


def deep(size: int) -> AlignedTrace:
    """A chain of `size` spans, each inside the one before it; `size` is at most 500,000."""
    return _aligned([_span(i + 1, i, i, 1_000_000 - i) for i in range(size)])


def _span(number: int, parent: int, start_us: int, end_us: int) -> Span:
    return Span(
        _TRACE_ID,
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        "work",
        INTERNAL,
        _START_NS + start_us * _US,
        _START_NS + end_us * _US,
        _RESOURCE,
    )


def _aligned(spans: list[Span]) -> AlignedTrace:
    return align_clocks(assemble(spans, Assumptions()))
