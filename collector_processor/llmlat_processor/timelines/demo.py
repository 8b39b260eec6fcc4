"""A population made for a demonstration: constant service, and a queue that grows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from llmlat_processor.profile import STAMPS

QUEUE_DELAYS_MS: Final = (4, 8, 12, 18, 45, 90, 170, 260, 390, 520)
GAPS: Final = 64
GAP_MS: Final = 22
ARRIVAL_EVERY_MS: Final = 40


def demo_lines() -> Iterator[str]:
    """Ten requests: 18 ms in, 6 gateway, the queue, 145 prefill, 11, 18 out, 64 gaps of 22."""
    for number, queue_ms in enumerate(QUEUE_DELAYS_MS):
        segments = (18, 6, queue_ms, 145, 11, 18, GAPS * GAP_MS)
        yield _line(f"demo-{number + 1:02}", number * ARRIVAL_EVERY_MS, segments)


def defective_lines() -> Iterator[str]:
    """One request of the same kind, whose prefill ends 5 ms before it starts."""
    yield _line("demo-skewed", 0, (18, 6, 4, -5, 11, 18, GAPS * GAP_MS))


def _line(request_id: str, send_ms: int, segments_ms: tuple[int, ...]) -> str:
    stamps = accumulate(segments_ms, initial=send_ms)
    named = {f"{name}_ms": float(stamp) for name, stamp in zip(STAMPS, stamps, strict=True)}
    record = {"request_id": request_id, "prompt_tokens": 512, "output_tokens": GAPS + 1}
    return json.dumps(record | named)
