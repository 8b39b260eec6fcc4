"""Traces of several clocks whose offsets, findings and alternatives are set by hand.

adviser (laptop)   the reference
vllm (gpu-1)       7 s ahead: from 6.70 s to 6.78 s
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from llmlat_processor.model import (
    NO_CLOCKS,
    Alternative,
    Clocks,
    CriticalPaths,
    ExplainedTrace,
    Finding,
    Interval,
    Message,
    Offset,
)
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor.adviser import MS, START_NS, adviser_spans, resource, span

CHAT: Final = (10).to_bytes(8, "big")
SERVED: Final = (15).to_bytes(8, "big")
OTHER: Final = (3).to_bytes(8, "big")

LAPTOP: Final = "laptop"
GPU: Final = "gpu-1"


def between(low_ms: float | None, high_ms: float | None) -> Interval:
    """An interval in milliseconds."""
    return Interval(
        None if low_ms is None else round(low_ms * MS),
        None if high_ms is None else round(high_ms * MS),
    )


def clocks(offsets: Mapping[str, Interval], messages: int = 2, left_out: int = 0) -> Clocks:
    """Offsets from the laptop's clock, the wall clocks' the same."""
    known = {LAPTOP: Offset(LAPTOP, Interval(0, 0), Interval(0, 0), messages)}
    for domain, interval in offsets.items():
        known[domain] = Offset(domain, interval, interval, messages)
    return Clocks(LAPTOP, known, left_out=left_out)


def with_clocks(explained: ExplainedTrace, known: Clocks, *findings: Finding) -> ExplainedTrace:
    """The same trace, of whose clocks this is known; its own findings about them are gone."""
    aligned = replace(explained.aligned, clocks=known, findings=())
    return replace(explained, aligned=aligned, findings=findings)


def adviser(*findings: Finding, known: Clocks | None = None) -> ExplainedTrace:
    """The adviser, of whose engine's clock something is known, and these findings."""
    if known is None:
        known = clocks({GPU: between(6_700, 6_780)})
    return with_clocks(process(adviser_spans()), known, *findings)


def one_clock() -> ExplainedTrace:
    """The adviser, as if nothing had been found out about clocks."""
    return with_clocks(process(adviser_spans()), NO_CLOCKS)


def ambiguous(explained: ExplainedTrace, *alternatives: Alternative) -> ExplainedTrace:
    """The same trace with other paths that the clocks allow, on both paths of its root."""
    (paths,) = explained.paths.roots
    e2e = replace(paths.e2e, alternatives=alternatives)
    ttft = replace(paths.ttft, alternatives=alternatives) if paths.ttft is not None else None
    moved = replace(paths, e2e=e2e, ttft=ttft)
    return replace(explained, paths=CriticalPaths((moved,), (), explained.paths.first_contents))


def request(arrived_ms: float) -> Message:
    """The chat's request, sent at 250 ms."""
    left_ns, arrived_ns = START_NS + 250 * MS, START_NS + round(arrived_ms * MS)
    return Message(LAPTOP, GPU, left_ns, arrived_ns, 2_000, 0, 100_000, CHAT, SERVED)


def answer(left_ms: float) -> Message:
    """The engine's answer, which came at 820 ms."""
    left_ns, arrived_ns = START_NS + round(left_ms * MS), START_NS + 820 * MS
    return Message(GPU, LAPTOP, left_ns, arrived_ns, 2_000, 5 * MS, 200_000, SERVED, CHAT)


def contradiction(kind: FindingKind = FindingKind.INFEASIBLE_OFFSET) -> Finding:
    """The engine's clock would be at most 6.75 s ahead, and at least 6.88 s."""
    proof = (request(7_000), answer(7_700))
    amount = sum(message.limit_ns for message in proof)
    epsilon = sum(message.arrived_ns - message.left_ns for message in proof)
    return Finding(kind, CHAT, amount, (CHAT, SERVED), amount - epsilon, proof=proof)


def apparent() -> Finding:
    """The engine's raw stamps lie outside the chat's."""
    return Finding(
        FindingKind.APPARENT_NEGATIVE_NETWORK,
        SERVED,
        6_160 * MS,
        (SERVED, CHAT),
        2_000,
        interval=between(6_700, 6_760),
    )


def many() -> ExplainedTrace:
    """Each way of knowing an offset, or of not knowing it."""
    places = {
        "edge-1": ("gateway", between(-4.98, 12)),
        "edge-2": ("gateway", between(None, 12.3456)),
        "tools-1": ("search", between(-3, None)),
        "tools-2": ("orders", between(None, None)),
    }
    spans = [
        span(100 + at, 1, f"call {host}", 0, 10, resource(service, host))
        for at, (host, (service, _)) in enumerate(places.items())
    ]
    offsets = {host: interval for host, (_, interval) in places.items()}
    known = clocks({GPU: between(None, None)} | offsets)
    silent = replace(known.offsets["tools-2"], messages=0)
    known = replace(known, offsets={**known.offsets, "tools-2": silent}, left_out=3)
    explained = process([*adviser_spans(), *spans])
    return with_clocks(explained, known, contradiction(), apparent())
