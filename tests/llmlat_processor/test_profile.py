"""Reports on populations of timelines: totals, percentiles, segments, what dominated."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import pytest

from llmlat_processor.profile import SEGMENTS, STAMPS, Timeline, percentile, profile
from llmlat_processor.timelines.demo import QUEUE_DELAYS_MS, demo_lines
from llmlat_processor.timelines.records import read_records
from llmlat_processor.timelines.report import report_document, report_text

MS = 1_000_000


def timeline(*segments_ms: int, output_tokens: int = 65, request_id: str = "r") -> Timeline:
    stamps = accumulate((ms * MS for ms in segments_ms), initial=0)
    return Timeline(request_id, 512, output_tokens, tuple(stamps))


def growing_queue() -> list[Timeline]:
    return [timeline(18, 6, queue, 145, 11, 18, 64 * 22) for queue in QUEUE_DELAYS_MS]


def test_growing_queue_gives_the_figures_of_the_worked_example() -> None:
    report = profile(growing_queue())

    assert report.ttft.percentiles_ns[50] == Fraction("265.5") * MS
    assert report.ttft.percentiles_ns[95] == Fraction("659.5") * MS
    assert report.gap is not None
    assert report.gap.percentiles_ns[95] == 22 * MS
    assert report.e2e.percentiles_ns[95] == Fraction("2067.5") * MS
    assert report.dominant_ttft.segment.name == "queue"
    assert report.dominant_ttft.mean_ns == Fraction("151.7") * MS
    assert report.dominant_e2e.segment.name == "stream"
    assert report.dominant_e2e.mean_ns == 1_408 * MS


def test_means_of_the_seven_segments_stand_in_their_order() -> None:
    means = dict(
        zip((s.name for s in SEGMENTS), profile(growing_queue()).segment_means_ns, strict=True)
    )

    assert means == {
        "network_in": 18 * MS,
        "gateway": 6 * MS,
        "queue": Fraction("151.7") * MS,
        "prefill": 145 * MS,
        "first_decode": 11 * MS,
        "network_to_first": 18 * MS,
        "stream": 1_408 * MS,
    }


def test_demo_population_is_the_worked_example() -> None:
    records = read_records(demo_lines())

    assert records.defects == ()
    assert [one.segments_ns for one in records.timelines] == [
        one.segments_ns for one in growing_queue()
    ]


def test_total_comes_before_the_percentile() -> None:
    """Two segments that are slow in different requests: their p95s would add up to too much."""
    slow_queue = timeline(0, 0, 100, 0, 0, 0, 0)
    slow_prefill = timeline(0, 0, 0, 100, 0, 0, 0)

    assert profile([slow_queue, slow_prefill]).ttft.percentiles_ns[95] == 100 * MS


def test_one_token_has_no_gap_and_leaves_the_others_theirs() -> None:
    one_token = timeline(1, 1, 1, 1, 1, 1, 0, output_tokens=1)
    three_tokens = timeline(1, 1, 1, 1, 1, 1, 10, output_tokens=3)

    assert profile([one_token]).gap is None
    gap = profile([one_token, three_tokens]).gap
    assert gap is not None
    assert gap.count == 1
    assert gap.mean_ns == 5 * MS


def test_one_request_is_its_own_percentiles() -> None:
    report = profile([timeline(1, 2, 3, 4, 5, 6, 64)])

    assert set(report.ttft.percentiles_ns.values()) == {Fraction(21 * MS)}
    assert set(report.e2e.percentiles_ns.values()) == {Fraction(85 * MS)}


def test_of_equal_segments_the_earlier_dominates() -> None:
    report = profile([timeline(1, 1, 9, 9, 1, 1, 9)])

    assert report.dominant_ttft.segment.name == "queue"
    assert report.dominant_e2e.segment.name == "queue"


def test_requests_that_took_no_time_have_no_dominant_share() -> None:
    report = profile([timeline(0, 0, 0, 0, 0, 0, 0)])

    assert report.dominant_e2e.share is None
    assert "every request took no time" in report_text(report, "still.jsonl")
    assert report_document(report, "still.jsonl")["dominant"] == {"ttft": None, "e2e": None}


def test_an_empty_population_has_no_profile() -> None:
    with pytest.raises(ValueError, match="at least one timeline"):
        profile([])


@pytest.mark.parametrize(
    ("prompt_tokens", "output_tokens", "stamps", "problem"),
    [
        (0, 1, range(8), "token counts"),
        (1, 0, range(8), "token counts"),
        (1, 1, range(7), "8 stamps"),
        (1, 1, (0, 1, 2, 3, 2, 5, 6, 7), "out of order"),
    ],
)
def test_a_timeline_that_cannot_be_is_not_made(
    prompt_tokens: int, output_tokens: int, stamps: range, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Timeline("r", prompt_tokens, output_tokens, tuple(stamps))


def test_percentile_interpolates_between_the_closest_ranks() -> None:
    values = [10, 20, 30, 40]

    assert percentile(values, 0) == 10
    assert percentile(values, 50) == 25
    assert percentile(values, 95) == Fraction("38.5")
    assert percentile(values, 100) == 40


def test_segments_lie_between_neighbouring_stamps() -> None:
    assert len(SEGMENTS) == len(STAMPS) - 1
    for segment in SEGMENTS:
        assert segment.owner
        assert segment.lever
        assert segment.next_test


REPORT = """\
demo: 10 requests

ms                      p50        p95       mean
TTFT                  265.5      659.5      349.7
gap                    22.0       22.0       22.0
E2E                 1,673.5    2,067.5    1,757.7

segment             mean ms     of E2E
network_in             18.0      1.0 %
gateway                 6.0      0.3 %
queue                 151.7      8.6 %  ###
prefill               145.0      8.2 %  ##
first_decode           11.0      0.6 %
network_to_first       18.0      1.0 %
stream              1,408.0     80.1 %  ########################

dominant in TTFT: queue, 151.7 ms mean of 349.7 (43.4 %)
  owner      the engine's scheduler and its capacity
  lever      more replicas, an admission limit, or fewer and shorter requests in flight
  next test  replay at half the arrival rate: a queue shrinks far more than by half

dominant in E2E: stream, 1,408.0 ms mean of 1,757.7 (80.1 %)
  owner      the engine's decode, by output length and batch
  lever      fewer output tokens, smaller batches, speculative decoding, faster memory
  next test  run one request alone: if the gap falls the batch is the cause, else the model

coordinates: boundary client (request sent to tokens received) | metrics TTFT, gap = stream / \
(output tokens - 1), E2E; total first, then the percentile | percentiles p50, p95, linear | \
workload demo, 10 requests in 2,486.0 ms | tokens 512 in, 65 out"""


def test_report_reads_from_the_figures_to_the_coordinates() -> None:
    report = profile(read_records(demo_lines()).timelines, percentiles=(50, 95))

    assert report_text(report, "demo", unicode=False) == REPORT


def test_document_has_the_figures_of_the_text() -> None:
    document = report_document(profile(growing_queue(), percentiles=(50, 95)), "file.jsonl")

    assert document["ttft_ms"] == {"count": 10, "mean": 349.7, "p50": 265.5, "p95": 659.5}
    assert document["e2e_ms"] == {"count": 10, "mean": 1757.7, "p50": 1673.5, "p95": 2067.5}
    assert document["gap_ms"] == {"count": 10, "mean": 22.0, "p50": 22.0, "p95": 22.0}


def test_a_gap_below_a_millisecond_is_not_shown_as_nothing() -> None:
    report = profile([timeline(1, 1, 1, 1, 1, 1, 1, output_tokens=51)])

    assert "gap                   0.020" in report_text(report, "fast.jsonl")
