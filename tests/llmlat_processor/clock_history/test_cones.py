"""Bounds that drift: the arrays say what all bounds together would, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.clock_history.cones import (
    MILLION,
    Bound,
    Cones,
    witness_bytes,
    witness_of,
)
from llmlat_processor.model.clock_history import Witness

INSTANTS = st.integers(-50_000, 50_000)
POINTS = st.lists(st.tuples(INSTANTS, st.integers(-20, 20)), min_size=1, max_size=40)
DRIFTS = st.sampled_from([0, 1, 200, 1_000])


def bound(at_ns: int, limit_ns: int, number: int = 0) -> Bound:
    return Bound(at_ns, limit_ns, number.to_bytes(32, "big"))


def cones_of(points: Sequence[tuple[int, int]], drift_ppm: int, most: int | None = None) -> Cones:
    cones = Cones(drift_ppm)
    for number, (at_ns, limit_ns) in enumerate(points):
        cones.add(bound(at_ns, limit_ns, number % 3), most)
    return cones


def brute_limit(points: Sequence[tuple[int, int]], drift_ppm: int, at_ns: int) -> int:
    return min(limit * MILLION + drift_ppm * abs(at_ns - then) for then, limit in points)


@given(POINTS, DRIFTS, INSTANTS)
def test_the_limit_is_that_of_all_bounds_ever_added(
    points: list[tuple[int, int]], drift_ppm: int, at_ns: int
) -> None:
    cones = cones_of(points, drift_ppm)

    assert cones.limit_at(at_ns) == brute_limit(points, drift_ppm, at_ns)
    tightest = cones.tightest_at(at_ns)
    assert tightest is not None
    assert brute_limit([tightest[:2]], drift_ppm, at_ns) == cones.limit_at(at_ns)


@given(POINTS, DRIFTS)
def test_no_bound_that_is_kept_is_dominated_by_another(
    points: list[tuple[int, int]], drift_ppm: int
) -> None:
    kept = cones_of(points, drift_ppm).points()

    assert kept == sorted(kept)
    for at_ns, limit_ns in kept:
        others = [other for other in kept if other != (at_ns, limit_ns)]
        assert not others or brute_limit(others, drift_ppm, at_ns) > limit_ns * MILLION


@given(POINTS, DRIFTS, st.randoms(use_true_random=False))
def test_order_changes_nothing(points: list[tuple[int, int]], drift_ppm: int, random) -> None:
    bounds = [bound(*point, number % 3) for number, point in enumerate(points)]
    shuffled = list(bounds)
    random.shuffle(shuffled)
    one, other = Cones(drift_ppm), Cones(drift_ppm)
    for first, second in zip(bounds, shuffled, strict=True):
        one.add(first)
        other.add(second)

    assert list(one) == list(other)


@given(POINTS, DRIFTS, INSTANTS, st.integers(1, 6))
def test_adding_only_ever_tightens_and_a_cap_only_ever_loosens(
    points: list[tuple[int, int]], drift_ppm: int, at_ns: int, most: int
) -> None:
    whole = Cones(drift_ppm)
    before = None
    for point in points:
        whole.add(bound(*point))
        now = whole.limit_at(at_ns)
        assert now is not None
        assert before is None or now <= before
        before = now
    capped = cones_of(points, drift_ppm, most)

    assert len(capped) <= most
    loose = capped.limit_at(at_ns)
    assert loose is not None
    assert before is not None
    assert loose >= before
    assert set(capped.points()) <= set(points)


def test_what_tightens_least_goes_first() -> None:
    cones = Cones(200)
    for at_ns, limit_ns in ((0, 100), (1_000_000, 290), (2_000_000, 100)):
        cones.add(bound(at_ns, limit_ns), 3)
    cones.add(bound(3_000_000, 50), 3)

    assert cones.points() == [(0, 100), (2_000_000, 100), (3_000_000, 50)]


def test_a_trace_is_forgotten_whole() -> None:
    cones = Cones(0)
    drifting = Cones(1_000)
    for number in range(6):
        at = number * MILLION
        drifting.add(
            Bound(at, number % 2, witness_bytes(bytes(15) + b"%d" % (number % 2), b"", b""))
        )
    cones.drop_trace(b"nobody")
    drifting.drop_trace(bytes(15) + b"1")

    assert len(cones) == 0
    assert drifting.points() == [(0, 0), (2 * MILLION, 0), (4 * MILLION, 0)]


def test_ids_come_back_as_they_were_and_short_ones_in_full_length() -> None:
    ids = (b"t" * 16, b"l" * 8, b"a" * 8)

    assert witness_of(Bound(0, 0, witness_bytes(*ids))) == Witness(*ids)
    short = witness_of(Bound(0, 0, witness_bytes(b"t", b"", b"a")))
    assert short == Witness(bytes(15) + b"t", bytes(8), bytes(7) + b"a")
