"""Lines through a corridor: their slopes and where they pass, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.clock_history.rates import hull, rates
from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import Drift

S = 10**9
MILLION = 10**6


def sides(most: int = 8) -> st.SearchStrategy[list[tuple[int, int]]]:
    points = st.lists(
        st.tuples(st.integers(0, 1_000), st.integers(0, 30)),
        min_size=1,
        max_size=most,
        unique_by=lambda point: point[0],
    )
    return points.map(sorted)


def brute(above, below, drift_ppm, at_ns):
    """Rates and passing points by all corners of the region of lines (two constraints each)."""
    fastest = Fraction(drift_ppm, MILLION)
    constraints = [(1, t, u) for t, u in above] + [(-1, -t, v) for t, v in below]
    constraints += [(0, 1, fastest), (0, -1, fastest)]
    corners = []
    for (a, b, c), (d, e, f) in product(constraints, repeat=2):
        if (determinant := a * e - b * d) == 0:
            continue
        start, rate = Fraction(c * e - b * f, determinant), Fraction(a * f - c * d, determinant)
        if all(p * start + q * rate <= r for p, q, r in constraints):
            corners.append((rate, start + rate * at_ns))
    return corners


@given(sides(), sides(), st.integers(-500, 1_500))
def test_rates_and_intervals_are_those_of_the_corners_of_all_lines(above, below, at_ns) -> None:
    drift_ppm = 50_000
    corners = brute(above, below, drift_ppm, at_ns)

    found = rates(above, below, drift_ppm)

    if not corners:
        assert found is None
        return
    assert found is not None
    assert (found.low, found.high) == (min(corners)[0], max(corners)[0])
    passing = [at for _, at in corners]
    low, high = min(passing), max(passing)
    assert found.interval(at_ns) == Interval(low.__floor__(), high.__ceil__())


@given(sides(20))
def test_a_hull_is_below_all_points_and_bends_upwards(points) -> None:
    corners = hull(points)

    assert set(corners) <= set(points)
    assert (corners[0], corners[-1]) == (points[0], points[-1])
    slopes = [Fraction(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(corners)]
    assert slopes == sorted(set(slopes))
    for (t0, u0), (t1, u1) in pairwise(corners):
        for at, limit in points:
            if t0 <= at <= t1:
                assert limit >= u0 + Fraction(u1 - u0, t1 - t0) * (at - t0)


def test_a_drift_of_100_ppm_is_told_from_readings_of_today() -> None:
    start_ns = 1_764_421_200 * S
    above = [(start_ns + k * 10 * S, k * 1_000_000 + 500) for k in range(12)]
    below = [(start_ns + k * 10 * S + 5 * S, -(k * 1_000_000 + 500_000) + 500) for k in range(12)]

    found = rates(above, below, 200)

    assert found is not None
    assert found.drift == Drift(99_991, 100_010)
    assert found.interval(start_ns + 60 * S) == Interval(6_000_000 - 500, 6_000_000 + 500)


def test_one_side_alone_bounds_one_side() -> None:
    found = rates([(0, 5)], [], 200)

    assert found is not None
    assert found.drift == Drift(-200_000, 200_000)
    assert found.interval(0) == Interval(None, 5)


def test_no_line_goes_where_the_rate_changed() -> None:
    above = [(0, 0), (S, 100_000), (2 * S, 0)]
    below = [(0, 0), (S, -100_000), (2 * S, 0)]

    assert rates(above, below, 200) is None
    assert rates([(0, -1)], [(0, 0)], 200) is None
