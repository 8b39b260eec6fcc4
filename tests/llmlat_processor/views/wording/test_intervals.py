"""Offsets in words: what is said contains what is known, and hardly more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import UNKNOWN, Interval
from llmlat_processor.views.wording import ahead, interval
from llmlat_processor.views.wording.intervals import offset

UNITS = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}
S, MS, US = 10**9, 10**6, 10**3


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (4_980 * MS, 5_010 * MS, "+4.98 s .. +5.01 s"),
        (4_980_123_456, 5_009_876_543, "+4.98 s .. +5.01 s"),
        (6_712_884_000, 6_762_104_000, "+6.7128 s .. +6.7622 s"),
        (-20 * MS, 5 * MS, "-20 ms .. +5 ms"),
        (0, 3 * US, "0 µs .. +3 µs"),
        (-S, S, "-1 s .. +1 s"),
        (123, 124, "+123 ns .. +124 ns"),
        (7 * S, 7 * S, "+7 s"),
        (None, 12 * MS, "at most +12.0 ms"),
        (None, -12_345_678, "at most -12.3 ms"),
        (None, 12_345_678, "at most +12.4 ms"),
        (-3_456, None, "at least -3.46 µs"),
        (None, 0, "at most 0"),
        (7_200 * S, 7_201 * S, "+7,200 s .. +7,201 s"),
    ],
)
def test_an_interval_is_written_as_people_read_it(
    low: int | None, high: int | None, said: str
) -> None:
    assert interval(Interval(low, high)) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (4_980_123_456, 5_009_876_543, "4.98 s to 5.01 s ahead of"),
        (-5_009_876_543, -4_980_123_456, "4.98 s to 5.01 s behind"),
        (-20 * MS, 5 * MS, "between 20 ms behind and 5 ms ahead of"),
        (0, 3 * US, "0 µs to 3 µs ahead of"),
        (-3 * US, 0, "0 µs to 3 µs behind"),
        (7 * S, 7 * S, "7 s ahead of"),
        (-7 * S, -7 * S, "7 s behind"),
        (0, 0, "level with"),
        (None, 12_345_678, "at most 12.4 ms ahead of"),
        (None, -12_345_678, "at least 12.3 ms behind"),
        (3_456, None, "at least 3.45 µs ahead of"),
        (-3_456, None, "at most 3.46 µs behind"),
        (None, 0, "not ahead of"),
        (0, None, "not behind"),
        (None, None, ""),
    ],
)
def test_who_is_ahead_of_whom_is_said_in_words(
    low: int | None, high: int | None, said: str
) -> None:
    assert ahead(Interval(low, high)) == said


def test_a_limit_is_rounded_outwards_to_what_it_is_asked() -> None:
    assert ahead(Interval(None, 6_750_102_000), step=MS) == "at most 6.751 s ahead of"
    assert ahead(Interval(None, -4_995_979_780), step=MS) == "at least 4.995 s behind"
    assert ahead(Interval(-4_709_180_380, None), step=MS) == "at most 4.710 s behind"
    assert ahead(Interval(None, -20), step=MS) == "not ahead of"


def test_nothing_is_said_of_what_nothing_bounds() -> None:
    assert interval(UNKNOWN) == ""


def test_microseconds_are_written_as_is_asked() -> None:
    assert interval(Interval(-US, US), "us") == "-1 us .. +1 us"
    assert ahead(Interval(-US, US), "us") == "between 1 us behind and 1 us ahead of"


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (1, "+1 ns"), (-1_500, "-1.5 µs"), (6_750_102 * US, "+6.750102 s"), (S, "+1 s")],
)
def test_one_offset_is_exact(value: int, said: str) -> None:
    assert offset(value) == said


def nanoseconds(said: str) -> int:
    """What was written, exactly."""
    found = re.fullmatch(r"([+-]?)([\d,]+)(?:\.(\d+))? (s|ms|µs|ns)", said)
    if found is None:
        assert said == "0"
        return 0
    sign, whole, decimals, unit = found.groups(default="")
    scaled = int(whole.replace(",", "") + decimals) * UNITS[unit]
    assert scaled % 10 ** len(decimals) == 0
    size: int = scaled // 10 ** len(decimals)
    return -size if sign == "-" else size


ENDS = st.integers(-(10**13), 10**13)


@given(ENDS, ENDS)
def test_what_is_said_contains_the_interval_and_hardly_more(one: int, other: int) -> None:
    low, high = sorted((one, other))
    said = interval(Interval(low, high)).split(" .. ")
    ends = [nanoseconds(end) for end in said]
    assert ends[0] <= low <= high <= ends[-1]
    assert (ends[-1] - ends[0] - (high - low)) * 50 <= high - low


@given(ENDS)
def test_a_single_end_is_rounded_outwards_to_three_digits(end: int) -> None:
    most = nanoseconds(interval(Interval(None, end)).removeprefix("at most "))
    least = nanoseconds(interval(Interval(end, None)).removeprefix("at least "))
    assert least <= end <= most
    assert (most - least) * 100 <= abs(end)


@given(ENDS, ENDS)
def test_words_and_signs_say_the_same(one: int, other: int) -> None:
    low, high = sorted((one, other))
    size = r"[\d,.]+ (?:s|ms|µs|ns)|0"
    ends = [nanoseconds(end) for end in re.findall(size, ahead(Interval(low, high)))]
    signed = [nanoseconds(end) for end in interval(Interval(low, high)).split(" .. ")]
    assert sorted(ends) == sorted(map(abs, signed)) or low == high == 0


@given(ENDS)
def test_an_exact_offset_can_be_read_back(value: int) -> None:
    assert nanoseconds(offset(value)) == value
