"""The command `python -m tests.properties.soak_clocks`: random traces whose clocks are known."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.garbage import relax_collector
from llmlat_semconv.values import FindingKind
from tests.properties.clock_checks import ALWAYS, IN_TURN, aligned
from tests.properties.clock_plants import (
    KINDS,
    blame_faults,
    claim_faults,
    explained,
    lying_world,
    plant_faults,
    planted_world,
)
from tests.properties.clock_shapes import grown_world
from tests.seeded import Command, Fault, Tally, clean, goal

TRACES: Final = 100_000
PLANTED_EVERY: Final = 20
"""Of so many worlds, one is made again with something impossible in it, and one with lies."""

GOALS: Final[Mapping[str, Sequence[str]]] = {
    "clock-domains-wrong": ("domain",),
    "offsets-outside-their-interval": ("truth",),
    "false-violations": ("violation", "pipeline", "blame"),
    "intervals-not-tightest": ("tightness", "text"),
    "changed-by-order": ("order",),
    "changed-by-a-shift": ("shift", "path"),
    "worse-with-more-tolerance": ("tolerance",),
    "messages-without-edges": ("edge",),
    "claims-without-proof": ("claim",),
    "raised": ("raised",),
}
"""Which checks must have found nothing."""

EXAMPLES: Final = """\
examples:
  make soak-clocks                                        100,000 traces, some minutes
  python -m tests.properties.soak_clocks --traces 2000    a look, in seconds
  python -m tests.properties.soak_clocks --seed 70123 --traces 1
                                                          one world again, with all of its faults

Ends with one line per goal, `goal NAME VALUE LIMIT met|short`; the exit status is 1 where a
property does not hold, and 130 after Ctrl-C.
"""


def soak(seeds: range) -> Tally:
    """Grow and check the worlds of some seeds."""
    tally = Tally()
    for seed in seeds:
        _check_grown(seed, tally)
        if seed % PLANTED_EVERY == 0:
            _check_planted(seed, KINDS[seed // PLANTED_EVERY % len(KINDS)], tally)
        elif seed % PLANTED_EVERY == 1:
            _check_lies(seed, tally)
    return tally


def _check_grown(seed: int, tally: Tally) -> None:
    turn = list(IN_TURN)[seed % len(IN_TURN)]
    check = "raised"
    try:
        world = grown_world(seed)
        found = aligned(world.spans(), world.assumptions)
        tally.counts.update(
            traces=1,
            operations=len(world.operations),
            domains=len(found.clocks.offsets),
            messages=len(found.clocks.messages),
        )
        for check in (*ALWAYS, turn):
            tally.counts[f"{check} checked"] += 1
            faults = (ALWAYS.get(check) or IN_TURN[check])(world, found)
            tally.faults += [Fault(check, seed, what) for what in faults[:1]]
    except Exception:  # noqa: BLE001 - whatever is raised is a fault of that seed
        tally.faults.append(Fault("raised", seed, f"in {check}: {traceback.format_exc()}"))


def _check_planted(seed: int, kind: FindingKind, tally: Tally) -> None:
    tally.counts[f"{kind.value} planted"] += 1
    try:
        plant = planted_world(seed, kind)
        found = explained(plant)
        faults, blamed = plant_faults(plant, found), blame_faults(plant, found)
    except Exception:  # noqa: BLE001 - as above
        faults, blamed = [traceback.format_exc()], []
    tally.counts[f"{kind.value} found"] += not faults
    tally.faults += [Fault(kind.value, seed, what) for what in faults[:1]]
    tally.faults += [Fault("blame", seed, what) for what in blamed[:1]]


def _check_lies(seed: int, tally: Tally) -> None:
    world = lying_world(seed)
    tally.counts["lying"] += 1
    try:
        faults = claim_faults(world, aligned(world.spans(), world.assumptions))
    except Exception:  # noqa: BLE001 - as above
        faults = [traceback.format_exc()]
    tally.faults += [Fault("claim", seed, what) for what in faults[:1]]


# ── The command ──────────────────────────────────────────────────────────────────────────────────


def _report(tally: Tally, asked: int, shown: Sequence[str]) -> Iterator[str]:
    counts = tally.counts
    yield (
        f"{counts['traces']:,} traces: {counts['operations']:,} operations,"
        f" {counts['domains']:,} clock domains, {counts['messages']:,} messages"
    )
    yield (
        "checked: "
        + ", ".join(f"{check} {counts[f'{check} checked']:,}" for check in (*ALWAYS, *IN_TURN))
        + f"; {counts['lying']:,} with stamps that lie"
    )
    yield from shown
    yield goal("clock-traces", counts["traces"], asked, is_met=counts["traces"] >= asked)
    yield from clean(tally, GOALS)
    for kind in KINDS:
        planted, found = counts[f"{kind.value} planted"], counts[f"{kind.value} found"]
        yield goal(f"planted-{kind.value}", found, planted, is_met=found == planted)


COMMAND: Final = Command(
    module="tests.properties.soak_clocks",
    what="traces",
    description="Hold the clocks of random traces to the truth that these were made of.",
    examples=EXAMPLES,
    amount=TRACES,
    work=soak,
    start=relax_collector,
    report=_report,
)


if __name__ == "__main__":
    sys.exit(COMMAND.run())
