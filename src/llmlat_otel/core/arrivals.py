"""Arrivals: what has come of a response so far, as plain numbers; nothing grows with a stream."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from llmlat_semconv.metrics import STREAM_GAP_BOUNDARIES_S
from llmlat_semconv.values import ContentKind

GAP_BOUNDARIES_NS: Final = tuple(round(each * 1e9) for each in STREAM_GAP_BOUNDARIES_S)


@dataclass(slots=True)
class Arrivals:
    """What has arrived of the response so far."""

    first_body_ns: int | None = None
    last_body_ns: int = 0
    first_chunk_ns: int | None = None
    last_chunk_ns: int = 0
    first_visible_ns: int | None = None
    first_visible_kind: ContentKind | None = None
    first_tool_call_ns: int | None = None
    last_content_ns: int | None = None
    gap_total_ns: int = 0
    gap_to_content_ns: int = 0
    gap_max_ns: int = 0
    usual_from_ns: int = 0
    usual_to_ns: int = -1
    usual_bucket: int = 0
    gap_buckets: list[int] = field(default_factory=lambda: [0] * (len(GAP_BOUNDARIES_NS) + 1))
    stall_count: int = 0
    stall_ns: int = 0

    def unusual(self, gap_ns: int, stall_threshold_ns: int) -> None:
        """A gap is not like the one before: another bucket, the longest so far, or a stall.

        Gaps of one stream are much alike, and comparing one with what is usual takes less than all
        of this.
        """
        bucket = bisect_left(GAP_BOUNDARIES_NS, gap_ns)
        self.gap_buckets[bucket] += 1
        self.gap_max_ns = max(self.gap_max_ns, gap_ns)
        if gap_ns > stall_threshold_ns:
            self.stall_count += 1
            self.stall_ns += gap_ns
        self.usual_bucket = bucket
        self.usual_from_ns = GAP_BOUNDARIES_NS[bucket - 1] if bucket else -1
        bounds = (*GAP_BOUNDARIES_NS[bucket : bucket + 1], self.gap_max_ns, stall_threshold_ns)
        self.usual_to_ns = min(bounds)
