"""The clock: anchors with a known uncertainty, and wall steps."""

from collections.abc import Callable, Iterator

from llmlat_otel.core.clock import SANDWICHES, STEP_NS, Clock, host_domain_id
from llmlat_otel.core.recording import Anchor
from llmlat_otel.testing import ManualClock

WALL_NS = 1_700_000_000_000_000_000


def reads(*values: int) -> Callable[[], int]:
    remaining: Iterator[int] = iter(values)
    return lambda: next(remaining)


def test_the_wall_reading_lies_within_two_monotonic_ones():
    clock = Clock(reads(*[100, 110] * SANDWICHES), reads(*[WALL_NS] * SANDWICHES), "d")
    assert clock.anchor() == Anchor(monotonic_ns=105, wall_ns=WALL_NS, uncertainty_ns=5)


def test_uncertainty_is_rounded_up():
    clock = Clock(reads(*[100, 103] * SANDWICHES), reads(*[WALL_NS] * SANDWICHES), "d")
    assert clock.anchor().uncertainty_ns == 2


def test_the_narrowest_sandwich_is_kept():
    widths = [100, 180, 200, 290, 300, 302, 400, 450, 500, 560]
    clock = Clock(reads(*widths), reads(*range(WALL_NS, WALL_NS + SANDWICHES)), "d")
    assert clock.anchor() == Anchor(monotonic_ns=301, wall_ns=WALL_NS + 2, uncertainty_ns=1)


def test_an_anchor_stays_while_both_clocks_run_alike():
    clock = ManualClock()
    first = clock.anchor()
    clock.advance(3_600_000_000_000)
    assert clock.anchor() is first


def test_a_wall_step_makes_a_new_anchor():
    clock = ManualClock()
    first = clock.anchor()
    clock.step_wall(-STEP_NS - 1)
    second = clock.anchor()
    assert second.wall_ns == first.wall_ns - STEP_NS - 1


def test_a_step_that_a_slow_reading_could_explain_is_none():
    wide_ns = 1_000_000
    monotonic = [0, 10] * SANDWICHES + [100, *[100, 100 + wide_ns] * SANDWICHES]
    wall = [WALL_NS + 5] * SANDWICHES + [WALL_NS + 101 + STEP_NS] * (1 + SANDWICHES)
    clock = Clock(reads(*monotonic), reads(*wall), "d")
    first = clock.anchor()
    assert clock.anchor() is first


def test_wall_time_of_an_instant():
    assert Anchor(monotonic_ns=50, wall_ns=1_000, uncertainty_ns=1).wall_at(80) == 1_030


def test_processes_of_one_host_share_a_domain():
    assert Clock().domain_id == Clock().domain_id == host_domain_id()


def test_a_domain_that_cannot_be_read_is_random(monkeypatch):
    monkeypatch.setattr("llmlat_otel.core.clock.host_domain_id", lambda: None)
    assert Clock().domain_id != Clock().domain_id


def test_a_domain_id_tells_nothing_of_the_host():
    boot_id = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip()  # noqa: PTH123, SIM115
    assert boot_id not in (host_domain_id() or "")
