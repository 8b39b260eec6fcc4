"""Durations and sizes: what is read, what is refused, and that what is written is read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from llmlat_processor.config.units import (
    LARGEST_BYTES,
    LONGEST_NS,
    duration_ns,
    duration_text,
    seconds_text,
    size_bytes,
    size_text,
)

DURATIONS = {
    "10s": 10 * 10**9,
    "500ms": 5 * 10**8,
    "1m30s": 90 * 10**9,
    "1.5h": 5_400 * 10**9,
    "2us": 2_000,
    "2µs": 2_000,
    "0": 0,
    "0s": 0,
}
SIZES = {
    "64MiB": 64 << 20,
    "4032KiB": 4032 << 10,
    "1.5GiB": 3 << 29,
    "64 MiB": 64 << 20,
    "10MB": 10**7,
    "1000": 1000,
    "7B": 7,
}


@pytest.mark.parametrize(("text", "value_ns"), DURATIONS.items(), ids=DURATIONS)
def test_a_duration_has_a_unit_or_several(text: str, value_ns: int) -> None:
    assert duration_ns(text) == value_ns


@pytest.mark.parametrize(("text", "value"), SIZES.items(), ids=SIZES)
def test_a_size_has_a_unit_or_is_in_bytes(text: str, value: int) -> None:
    assert size_bytes(text) == value


NO_DURATION = ["", "10", "s", "10 s", "-1s", "1e3s", "10S", "1d", "inf", "٣s", "1s\n"]


@pytest.mark.parametrize("text", NO_DURATION)
def test_what_is_no_duration_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match="like 10s"):
        duration_ns(text)


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1e6", "64mib", "64M", "1.5", "٣", "64MiB\n"])
def test_what_is_no_size_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match="like 64MiB"):
        size_bytes(text)


def test_what_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than anybody waits"):
        duration_ns("99999999999999999999h")
    with pytest.raises(ValueError, match="larger than any memory"):
        size_bytes("99999999999999999999TiB")


@given(some.integers(0, LONGEST_NS))
def test_a_duration_that_is_written_is_read_again(value_ns: int) -> None:
    assert duration_ns(duration_text(value_ns)) == value_ns


@given(some.integers(0, LARGEST_BYTES))
def test_a_size_that_is_written_is_read_again(value: int) -> None:
    assert size_bytes(size_text(value)) == value


def test_a_duration_is_written_as_people_do() -> None:
    assert [seconds_text(value) for value in (0, 0.5, 60, 300, 600, 86_400)] == [
        *("0s", "500ms", "60s", "300s", "10m", "24h"),
    ]
