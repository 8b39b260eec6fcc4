"""How what is said is written: numbers to the microsecond, texts that every backend keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.written import seconds, six_digits


def test_a_duration_is_told_to_the_microsecond() -> None:
    assert [seconds(ns) for ns in (0, 499, 501, 1_234_567_891)] == [0.0, 0.0, 1e-6, 1.234568]


@given(st.integers(-(10**18), 10**18) | st.integers(0, 10**15).map(lambda us: us * 1_000 + 500))
def test_a_duration_is_rounded_as_round_does_it(duration_ns: int) -> None:
    assert repr(seconds(duration_ns)) == repr(round(duration_ns / 1e9, 6))


@given(st.floats(allow_nan=False) | st.floats(0, 1) | st.integers(0, 10**7).map(lambda n: n / 2e6))
def test_a_number_is_rounded_as_round_does_it(value: float) -> None:
    assert repr(six_digits(value)) == repr(round(value, 6))
