"""Growth is told from a warm-up, and from a level that only wavers."""

import pytest

from bench.soaking_looks import MIB, Course, Look


def course(*resident_mib: float, cpu_s: float = 0.25) -> Course:
    """A look each second."""
    return Course(
        [
            Look(second, round(size * MIB), cpu_s * second, 0, 0, 0, 0, 0, 0, balances=True)
            for second, size in enumerate(resident_mib)
        ]
    )


FLAT = [50, 80, 99, 100, 101, 100, 100, 101, 100, 100, 101, 100]
GROWING = [50, 80, 99, 100, 110, 120, 130, 140, 150, 160, 170, 180]


def test_the_warm_up_is_no_growth():
    assert course(*FLAT).growth_mib == pytest.approx(100 - 1.05 * 100)
    assert abs(course(*FLAT).slope_mib) < 0.2 * 600


def test_what_grows_is_found():
    assert course(*GROWING).growth_mib == pytest.approx(170 - 1.05 * 110)
    assert course(*GROWING).slope_mib == pytest.approx(10 * 600)


def test_quarters_are_of_all_looks():
    looks = course(*range(11))
    assert [look for number in range(4) for look in looks.quarter(number)] == looks.looks


def test_cpu_is_a_share_of_one_core():
    assert course(*FLAT, cpu_s=0.25).cpu_share == pytest.approx(0.25)


IDLE = Look(0, 1, 1, 1, 0, 0, 0, 9, 0, balances=True)


@pytest.mark.parametrize(
    "look",
    [
        IDLE._replace(held_traces=1),
        IDLE._replace(held_bytes=1),
        IDLE._replace(kept_batches=1),
        IDLE._replace(under_way=1),
    ],
    ids=["a trace", "held", "kept", "under way"],
)
def test_it_is_idle_when_nothing_is_left(look: Look):
    assert IDLE.is_idle
    assert not look.is_idle
