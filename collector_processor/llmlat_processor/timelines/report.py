"""A profile as text and as a JSON document; the figures of both are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from llmlat_processor.profile import SEGMENTS, Coordinates, Distribution, Dominant, Profile, Segment
from llmlat_processor.timelines.records import Defect

NS_PER_MS: Final = 1_000_000
BAR: Final = 30
BOUNDARY: Final = "client (request sent to tokens received)"
METRICS: Final = "TTFT, gap = stream / (output tokens - 1), E2E; total first, then the percentile"


def report_text(report: Profile, workload: str, *, unicode: bool = True) -> str:
    """Write a profile for a person; `unicode` False keeps to ASCII."""
    return "\n".join(
        [
            f"{workload}: {_plural(report.coordinates.requests, 'request')}",
            "",
            *_metrics(report),
            "",
            *_segments(report, "█" if unicode else "#"),
            "",
            *_advice("TTFT", report.dominant_ttft, report.ttft.mean_ns),
            "",
            *_advice("E2E", report.dominant_e2e, report.e2e.mean_ns),
            "",
            _coordinates(report.coordinates, workload, " · " if unicode else " | "),
        ]
    )


def refusal_text(defects: Sequence[Defect], file: str) -> str:
    """Say what was refused and why, one line a problem."""
    return "\n".join(
        [
            *(f"{file}:{one.line}: {_request(one)}: {one.problem}" for one in defects),
            f"{file}: refused, {_plural(len(defects), 'problem')}; a defective record is never "
            "turned into a number",
        ]
    )


def report_document(report: Profile, workload: str) -> dict[str, object]:
    """Give a profile as JSON types; durations in milliseconds, shares 0 to 1."""
    at = report.coordinates
    return {
        "workload": workload,
        "coordinates": {
            "boundary": BOUNDARY,
            "metrics": METRICS,
            "percentiles": list(at.percentiles),
            "interpolation": "linear",
            "requests": at.requests,
            "span_ms": _ms(at.span_ns),
            "prompt_tokens": list(at.prompt_tokens),
            "output_tokens": list(at.output_tokens),
        },
        "ttft_ms": _figures(report.ttft),
        "gap_ms": None if report.gap is None else _figures(report.gap),
        "e2e_ms": _figures(report.e2e),
        "segment_means_ms": {
            segment.name: _ms(mean)
            for segment, mean in zip(SEGMENTS, report.segment_means_ns, strict=True)
        },
        "dominant": {
            "ttft": _dominant(report.dominant_ttft),
            "e2e": _dominant(report.dominant_e2e),
        },
    }


def refusal_document(defects: Sequence[Defect], file: str) -> dict[str, object]:
    """Give the refusal of a file as JSON types."""
    return {
        "refused": [
            {
                "file": file,
                "line": one.line,
                "request_id": one.request_id,
                "problem": one.problem,
            }
            for one in defects
        ]
    }


def _means(report: Profile) -> Iterator[tuple[Segment, Fraction]]:
    return zip(SEGMENTS, report.segment_means_ns, strict=True)


def _metrics(report: Profile) -> Iterator[str]:
    heads = [f"p{percent}" for percent in report.coordinates.percentiles]
    yield f"{'ms':16}" + "".join(f"{head:>11}" for head in [*heads, "mean"])
    yield _metric("TTFT", report.ttft)
    if report.gap is None:
        yield "gap             absent: no request has two output tokens"
    else:
        yield _metric("gap", report.gap)
    yield _metric("E2E", report.e2e)


def _metric(name: str, values: Distribution) -> str:
    figures = [*values.percentiles_ns.values(), values.mean_ns]
    return f"{name:16}" + "".join(f"{_shown(figure):>11}" for figure in figures)


def _segments(report: Profile, block: str) -> Iterator[str]:
    whole = report.e2e.mean_ns
    yield f"{'segment':16}{'mean ms':>11}{'of E2E':>11}"
    for segment, mean in _means(report):
        share = mean / whole if whole else Fraction(0)
        bar = block * round(share * BAR)
        yield f"{segment.name:16}{_shown(mean):>11}{_percent(share):>11}  {bar}".rstrip()


def _advice(metric: str, dominant: Dominant, whole: Fraction) -> Iterator[str]:
    if dominant.share is None:
        yield f"dominant in {metric}: none, every request took no time"
        return
    yield (
        f"dominant in {metric}: {dominant.segment.name}, {_shown(dominant.mean_ns)} ms mean "
        f"of {_shown(whole)} ({_percent(dominant.share)})"
    )
    yield f"  owner      {dominant.segment.owner}"
    yield f"  lever      {dominant.segment.lever}"
    yield f"  next test  {dominant.segment.next_test}"


def _coordinates(at: Coordinates, workload: str, separator: str) -> str:
    parts = (
        f"boundary {BOUNDARY}",
        f"metrics {METRICS}",
        f"percentiles {', '.join(f'p{percent}' for percent in at.percentiles)}, linear",
        f"workload {workload}, {_plural(at.requests, 'request')} in {_shown(at.span_ns)} ms",
        f"tokens {_range(at.prompt_tokens)} in, {_range(at.output_tokens)} out",
    )
    return "coordinates: " + separator.join(parts)


def _figures(values: Distribution) -> dict[str, object]:
    shown = {f"p{percent}": _ms(value) for percent, value in values.percentiles_ns.items()}
    return {"count": values.count, "mean": _ms(values.mean_ns), **shown}


def _dominant(dominant: Dominant) -> dict[str, object] | None:
    if dominant.share is None:
        return None
    return {
        "segment": dominant.segment.name,
        "mean_ms": _ms(dominant.mean_ns),
        "share": float(dominant.share),
        "owner": dominant.segment.owner,
        "lever": dominant.segment.lever,
        "next_test": dominant.segment.next_test,
    }


def _request(defect: Defect) -> str:
    if defect.request_id is None:
        return "request unknown"
    return f"request {defect.request_id!r}"


def _range(ends: tuple[int, int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _ms(value_ns: int | Fraction) -> float:
    return float(Fraction(value_ns) / NS_PER_MS)


def _shown(value_ns: int | Fraction) -> str:
    """One decimal, or three below a millisecond: a gap of 20 µs is not 0.0."""
    value = _ms(value_ns)
    return f"{value:.3f}" if 0 < value < 1 else f"{value:,.1f}"


def _percent(share: Fraction) -> str:
    return f"{float(share * 100):.1f} %"
