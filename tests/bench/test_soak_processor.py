"""A processor at work loses nothing, and its soak sees what it would lose: in small."""

from dataclasses import replace

import pytest

from bench import soak_processor
from bench.progress import Progress
from bench.report import Goal
from bench.soak_processor import Amount, Soaked
from bench.soaking_ledger import Sent, Tally
from bench.soaking_looks import MIB, Look

FEW = Amount(minutes=0.05, rate=400)


@pytest.fixture(scope="module")
def soaked() -> Soaked:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(soak_processor, "_RESTS_S", 0)
        return soak_processor.soak(FEW, Progress())


def test_everything_that_is_sent_comes_out(soaked: Soaked):
    assert soaked.tally.sent > 0
    assert (soaked.tally.lost, soaked.tally.repeated, soaked.unbalanced) == (0, 0, 0)
    assert len(soaked.tally.delays_s) == soaked.tally.traces
    assert soaked.tally.lanes > 0


def test_nothing_is_left_of_it(soaked: Soaked):
    assert soaked.left[-1].is_idle
    assert any(not look.is_idle for look in [*soaked.loaded, *soaked.left])
    assert f"{soaked.tally.sent} spans received" in soaked.said


def looks(count: int, growing_mib: float = 0, *, balances: bool = True) -> list[Look]:
    """A look each second, a tenth of a core."""
    return [
        Look(
            at_s=second,
            resident_bytes=round((100 + growing_mib * second) * MIB),
            cpu_s=0.1 * second,
            journal_bytes=0,
            held_traces=0,
            held_bytes=0,
            kept_batches=0,
            received=0,
            under_way=0,
            balances=balances,
        )
        for second in range(count)
    ]


FOUND = Soaked(
    fresh=looks(1)[0],
    loaded=looks(40),
    left=looks(2),
    tally=Tally(100, 400_000, 400_000, 0, 1_000, [2.0] * 100),
    sent=Sent(seconds=40),
    said="400000 spans received",
)


def short(found: Soaked, amount: Amount) -> list[str]:
    goals: list[Goal] = [*soak_processor.report(found, amount).goals]
    return [goal.name for goal in goals if not goal.is_met]


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (FOUND, []),
        (replace(FOUND, sent=Sent(seconds=50)), ["soak_rate"]),
        (replace(FOUND, tally=replace(FOUND.tally, received=399_999)), ["soak_lost"]),
        (replace(FOUND, tally=replace(FOUND.tally, delays_s=[2.6] * 9)), ["soak_delay_p95"]),
        (replace(FOUND, loaded=looks(40, 2)), ["soak_growth"]),
        (replace(FOUND, left=looks(1, balances=False)), ["soak_unbalanced"]),
        (replace(FOUND, left=[looks(1)[0]._replace(kept_batches=1)]), ["soak_left_over"]),
    ],
)
def test_each_goal_can_be_missed(found: Soaked, names: list[str]):
    assert short(found, Amount()) == names


def test_cpu_is_allowed_in_proportion_to_the_spans():
    less = replace(FOUND, sent=Sent(seconds=400))
    assert short(less, Amount(rate=1_000)) == ["soak_cpu"]


def test_a_soak_that_was_ended_at_once_says_so():
    made = soak_processor.report(replace(FOUND, loaded=looks(3)), Amount())
    assert not made.goals
    assert "before there was anything to measure" in str(made)


def test_traces_are_not_remembered_for_most_of_the_time():
    assert [Amount(minutes).remembered_s for minutes in (0.05, 2, 10, 60)] == [1, 24, 120, 600]
