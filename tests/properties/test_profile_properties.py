"""What holds for every population of timelines."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.profile import STAMPS, TTFT_SEGMENTS, Timeline, percentile, profile
from llmlat_processor.timelines.records import read_records

durations = st.integers(min_value=0, max_value=10**13)
counts = st.integers(min_value=1, max_value=10**6)
percents = st.integers(min_value=0, max_value=100)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    start = draw(st.integers(min_value=-(10**18), max_value=10**18))
    segments = draw(st.lists(durations, min_size=7, max_size=7))
    stamps = tuple(accumulate(segments, initial=start))
    return Timeline(draw(st.text(min_size=1)), draw(counts), draw(counts), stamps)


populations = st.lists(timelines(), min_size=1, max_size=12)


@given(timelines())
def test_segments_sum_to_ttft_and_e2e(one: Timeline) -> None:
    assert sum(one.segments_ns[: len(TTFT_SEGMENTS)]) == one.ttft_ns
    assert sum(one.segments_ns) == one.e2e_ns


@given(timelines())
def test_gaps_sum_to_the_stream(one: Timeline) -> None:
    if one.output_tokens == 1:
        assert one.gap_ns is None
    else:
        assert one.gap_ns is not None
        assert one.gap_ns * (one.output_tokens - 1) == one.segments_ns[-1]


@given(populations)
def test_means_of_segments_sum_to_the_means_of_the_totals(population: list[Timeline]) -> None:
    report = profile(population)

    assert sum(report.segment_means_ns[: len(TTFT_SEGMENTS)]) == report.ttft.mean_ns
    assert sum(report.segment_means_ns) == report.e2e.mean_ns


@given(st.lists(durations, min_size=1), percents)
def test_a_percentile_lies_between_the_extremes(values: list[int], percent: int) -> None:
    assert min(values) <= percentile(sorted(values), percent) <= max(values)


@given(st.lists(durations, min_size=1), percents, percents)
def test_a_percentile_never_falls_as_the_percent_grows(
    values: list[int], one: int, other: int
) -> None:
    ordered = sorted(values)
    low, high = sorted((one, other))

    assert percentile(ordered, low) <= percentile(ordered, high)


@given(st.lists(durations, min_size=1), st.integers(min_value=-(10**12), max_value=10**12))
def test_a_percentile_moves_with_its_values(values: list[int], shift: int) -> None:
    ordered = sorted(values)

    assert percentile([value + shift for value in ordered], 95) == percentile(ordered, 95) + shift


@given(populations, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(population: list[Timeline], random: object) -> None:
    shuffled = list(population)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert profile(shuffled) == profile(population)


@given(populations)
def test_what_is_written_is_read_back_exactly(population: list[Timeline]) -> None:
    """Stamps go through decimal milliseconds, so no nanosecond is lost on the way."""
    lines = [_written(one, number) for number, one in enumerate(population)]
    records = read_records(lines)

    assert records.defects == ()
    assert [one.stamps_ns for one in records.timelines] == [one.stamps_ns for one in population]


@given(timelines(), st.integers(min_value=1, max_value=7), st.integers(1, 10**12))
def test_a_stamp_before_its_predecessor_is_never_a_number(
    one: Timeline, position: int, early_ns: int
) -> None:
    stamps = list(one.stamps_ns)
    stamps[position] = stamps[position - 1] - early_ns
    records = read_records([_line("r", one, stamps)])

    assert records.timelines == ()
    assert f"{STAMPS[position]}_ms is " in records.defects[0].problem


def _written(one: Timeline, number: int) -> str:
    return _line(f"{number} {one.request_id}", one, list(one.stamps_ns))


def _line(request_id: str, one: Timeline, stamps_ns: list[int]) -> str:
    counts = {"prompt_tokens": one.prompt_tokens, "output_tokens": one.output_tokens}
    head = json.dumps({"request_id": request_id, **counts})
    stamps = (
        f'"{name}_ms": {_milliseconds(stamp)}'
        for name, stamp in zip(STAMPS, stamps_ns, strict=True)
    )
    return f"{head[:-1]}, {', '.join(stamps)}}}"


def _milliseconds(stamp_ns: int) -> str:
    sign = "-" if stamp_ns < 0 else ""
    whole, rest = divmod(abs(stamp_ns), 10**6)
    assert Fraction(f"{sign}{whole}.{rest:06}") * 10**6 == stamp_ns
    return f"{sign}{whole}.{rest:06}"
