"""The worlds are possible and of every kind, and each check of them finds what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import (
    CONSUMER,
    AlignedTrace,
    Clocks,
    Finding,
    Interval,
    Message,
)
from llmlat_processor.stages.assemble import assemble
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence, FindingKind, StreamEnd
from tests.properties import soak_clocks
from tests.properties.clock_checks import (
    ALWAYS,
    aligned,
    edge_faults,
    tightness_faults,
    truth_faults,
    violation_faults,
)
from tests.properties.clock_hosts import Host
from tests.properties.clock_plants import planted_world
from tests.properties.clock_proofs import certificate_faults, holds, interval_of, shortest
from tests.properties.clock_shapes import grown_world
from tests.properties.clock_world import World

SEEDS = st.integers(0, 2**32)


# ── The worlds ───────────────────────────────────────────────────────────────────────────────────


@given(SEEDS)
def test_what_the_rules_conclude_is_true_of_every_world(seed: int) -> None:
    for bound in grown_world(seed).bounds:
        assert bound.left - bound.tail_ns <= bound.arrived


@given(SEEDS)
def test_the_true_offsets_satisfy_what_the_stamps_show(seed: int) -> None:
    world = grown_world(seed)
    for bound in world.bounds:
        one, other = world.host_of(bound.sender), world.host_of(bound.receiver)
        theta = other.ahead_ns - one.ahead_ns
        drift = abs(other.drift_ppb - one.drift_ppb) * bound.left // 10**9
        blurred = one.resolution_ns + other.resolution_ns + 2 * 71_000
        seen = world.reading(bound.receiver, bound.arrived)
        seen -= world.reading(bound.sender, bound.left)
        assert theta <= seen + bound.tail_ns + blurred + drift


@given(SEEDS)
def test_a_seed_makes_one_world(seed: int) -> None:
    one, other = (
        [(s.span_id, s.start_ns, s.end_ns, s.attributes) for s in grown_world(seed).spans()]
        for _ in range(2)
    )
    assert one == other


@given(SEEDS)
def test_no_span_is_damaged(seed: int) -> None:
    world = grown_world(seed)
    assert assemble(world.spans(), world.assumptions).findings == ()


_KINDS: dict[str, Callable[[World], bool]] = {
    "two hosts": lambda world: len(world.hosts) == 2,
    "eight hosts": lambda world: len(world.hosts) == 8,
    "no drift": lambda world: not any(host.drift_ppb for host in world.hosts.values()),
    "as much drift as there may be": lambda world: any(
        host.drift_ppb == 99_000 for host in world.hosts.values()
    ),
    "milliseconds": lambda world: _some(world, lambda host: host.resolution_ns == 1_000_000),
    "microseconds, monotonic": lambda world: _some(
        world, lambda host: host.monotonic_ns is not None and host.resolution_ns == 1_000
    ),
    "undeclared": lambda world: _some(world, lambda host: not host.declares),
    "plain spans beside ours": lambda world: any(
        each.plain and world.host_of(each).monotonic_ns is not None for each in world.operations
    ),
    "replicas": lambda world: any(each.process.replica for each in world.operations),
    "a minute": lambda world: world.root.end > 30 * 10**9,
    "milliseconds long": lambda world: world.root.end < 10**7,
    "a consumer": lambda world: any(each.kind == CONSUMER for each in world.operations),
    "links": lambda world: any(each.links for each in world.operations),
    "joins": lambda world: any(each.events for each in world.operations),
    "a relay that is bounded": lambda world: Evidence.BOUNDED in _evidence(world),
    "a relay that is measured": lambda world: any(
        phase.phase is Phase.RELAY and phase.evidence is Evidence.MEASURED
        for each in world.operations
        for phase in each.phases
    ),
    "attempts": lambda world: any(
        names.LLMLAT_ATTEMPT_NUMBER in each.told for each in world.operations
    ),
    "a cancelled stream": lambda world: any(
        each.told.get(names.LLMLAT_STREAM_END) == StreamEnd.CANCELLED.value
        for each in world.operations
    ),
    "first content and first token": lambda world: any(
        each.content is not None for each in world.operations
    ),
}


def _some(world: World, holds_of: Callable[[Host], bool]) -> bool:
    return any(holds_of(host) for host in world.hosts.values())


def _evidence(world: World) -> set[Evidence]:
    return {phase.evidence for each in world.operations for phase in each.phases}


@pytest.mark.parametrize("kind", _KINDS)
def test_worlds_are_of_every_kind(kind: str) -> None:
    assert sum(_KINDS[kind](grown_world(seed)) for seed in range(300)) >= 3


# ── The checks ───────────────────────────────────────────────────────────────────────────────────


def _message(sender: str, receiver: str, limit_ns: int) -> Message:
    return Message(sender, receiver, 0, limit_ns, 0, 0, 0, b"", b"")


def test_shortest_paths_by_hand() -> None:
    messages = [_message(*each) for each in (("a", "b", 5), ("b", "c", -2), ("c", "a", 4))]
    limits = shortest("abc", [*messages, _message("a", "c", 9)])
    assert limits is not None
    assert interval_of(limits, "a", "c") == Interval(-4, 3)
    assert interval_of(limits, "a", "b") == Interval(-2, 5)
    assert shortest("abc", [*messages, _message("c", "a", -4)]) is None


def test_an_open_interval_holds_what_lies_on_its_side() -> None:
    assert holds(Interval(None, 3), -(10**9))
    assert holds(Interval(None, 3), 4, slack_ns=1)
    assert not holds(Interval(None, 3), 4)


def _with_messages(minimum: int) -> tuple[World, AlignedTrace]:
    """A world whose offsets are bounded both ways."""
    for seed in range(1_000):
        world = grown_world(seed)
        found = aligned(world.spans(), world.assumptions)
        offsets = list(found.clocks.offsets.values())[1:]
        if len(offsets) >= minimum and all(None not in offset.interval for offset in offsets):
            return world, found
    raise AssertionError("no such world")


def _forged(clocks: Clocks, message: Message) -> Clocks:
    return replace(clocks, messages=(message, *clocks.messages[1:]))


def test_an_interval_beside_the_truth_is_seen() -> None:
    world, found = _with_messages(1)
    domain, offset = list(found.clocks.offsets.items())[1]
    low, high = offset.interval
    assert low is not None
    assert high is not None
    beside = replace(offset, interval=Interval(high + 1, high + 2))
    forged = replace(found.clocks, offsets={**found.clocks.offsets, domain: beside})
    assert truth_faults(world, replace(found, clocks=forged))
    assert tightness_faults(world, replace(found, clocks=forged))
    wider = replace(offset, interval=Interval(low - 1, high))
    forged = replace(found.clocks, offsets={**found.clocks.offsets, domain: wider})
    assert not truth_faults(world, replace(found, clocks=forged))
    assert tightness_faults(world, replace(found, clocks=forged))


def test_a_message_that_is_false_or_invented_is_seen() -> None:
    world, found = _with_messages(1)
    message = found.clocks.messages[0]
    false = message._replace(arrived_ns=message.arrived_ns - 3_600 * 10**9)
    forged = replace(found, clocks=_forged(found.clocks, false))
    assert truth_faults(world, forged)
    assert edge_faults(world, forged)
    back = message._replace(left=message.arrived, arrived=message.left)
    assert edge_faults(world, replace(found, clocks=_forged(found.clocks, back)))


def test_a_false_violation_is_seen() -> None:
    assert violation_faults(grown_world(0), [Finding(FindingKind.CLOCK_STEP, b"")])
    harmless = Finding(FindingKind.APPARENT_NEGATIVE_NETWORK, b"")
    assert not violation_faults(grown_world(0), [harmless])


def test_a_proof_is_believed_only_where_all_of_it_is_true() -> None:
    plant = planted_world(0, FindingKind.OFFSET_CYCLE)
    found = aligned(plant.world.spans(), plant.world.assumptions)
    finding = next(each for each in found.findings if each.kind is FindingKind.OFFSET_CYCLE)
    first, *others = finding.proof
    assert finding.amount_ns is not None
    assert certificate_faults(plant.world, found, finding) == []
    for forged in (
        replace(finding, proof=()),
        replace(finding, amount_ns=finding.amount_ns + 1),
        replace(finding, proof=tuple(others)),
        replace(finding, proof=(*others[::-1], first._replace(receiver=first.sender))),
        replace(finding, proof=(first._replace(left=first.arrived), *others)),
        replace(finding, proof=(first._replace(left_ns=first.left_ns + 1), *others)),
        replace(finding, proof=(first._replace(epsilon_ns=0), *others)),
        replace(finding, proof=(first._replace(tail_ns=7), *others)),
        replace(finding, witnesses=()),
    ):
        assert certificate_faults(plant.world, found, forged)


# ── The command ──────────────────────────────────────────────────────────────────────────────────


def test_the_soak_counts_and_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak_clocks.COMMAND.run(["--traces", "60", "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert "goal clock-traces 60 60 met" in said
    assert "goal planted-negative_transit 1 1 met" in said
    assert " short" not in said


def test_the_soak_says_how_to_see_a_fault_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALWAYS, "truth", lambda *_: ["made up"])
    assert (
        soak_clocks.COMMAND.run(["--traces", "2", "--seed", "7", "--jobs", "1", "--faults", "1"])
        == 1
    )
    said = capsys.readouterr().out
    assert "truth, seed 7: made up" in said
    assert "--seed 7 --traces 1" in said
    assert "seed 8" not in said
    assert "goal offsets-outside-their-interval 2 0 short" in said


def test_the_soak_refuses_no_traces(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak_clocks.COMMAND.run(["--traces", "0"])
    assert "0 is less than 1" in capsys.readouterr().err
