"""The command `python -m tests.properties.soak_clocks`: random traces whose clocks are known."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.progress import Progress
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

TRACES: Final = 100_000
CHUNK: Final = 250
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


class Fault(NamedTuple):
    """What does not hold of the world of one seed."""

    check: str
    seed: int
    what: str


@dataclass(slots=True)
class Tally:
    """What a stretch of seeds has come to."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take in another's."""
        self.counts.update(other.counts)
        self.faults = sorted([*self.faults, *other.faults], key=lambda fault: fault.seed)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, and say what was found; the exit status."""
    asked = _parser().parse_args(arguments)
    seeds = range(asked.seed, asked.seed + asked.traces)
    tally, progress = Tally(), Progress()
    is_whole = False
    try:
        for part in _parts(seeds, asked.jobs):
            tally.add(part)
            done = tally.counts["traces"]
            progress.note(f"{done:,} of {asked.traces:,} traces, {len(tally.faults)} faults")
        is_whole = True
    except KeyboardInterrupt:
        pass
    progress.note("")
    print("\n".join(_report(tally, asked.traces, asked.faults)))
    if not is_whole:
        print("stopped before its end", file=sys.stderr)
        return 130
    return 1 if tally.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.properties.soak_clocks",
        description="Hold the clocks of random traces to the truth that these were made of.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--traces", type=_positive, default=TRACES, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first one")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=_positive, default=cores, metavar="N", help="processes")
    parser.add_argument(
        "--faults", type=_positive, default=5, metavar="N", help="how many of each kind are shown"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _parts(seeds: range, jobs: int) -> Iterator[Tally]:
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    if jobs == 1 or len(chunks) == 1:
        yield from map(soak, chunks)
        return
    with multiprocessing.Pool(jobs, initializer=_ignore_interrupts) as pool:
        yield from pool.imap(soak, chunks)


def _ignore_interrupts() -> None:
    """Ctrl-C goes to every process of a terminal; the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _report(tally: Tally, asked: int, shown: int) -> Iterator[str]:
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
    yield from _shown(tally.faults, shown)
    yield _goal("clock-traces", counts["traces"], asked, is_met=counts["traces"] >= asked)
    for name, checks in GOALS.items():
        value = sum(fault.check in checks for fault in tally.faults)
        yield _goal(name, value, 0, is_met=value == 0)
    for kind in KINDS:
        planted, found = counts[f"{kind.value} planted"], counts[f"{kind.value} found"]
        yield _goal(f"planted-{kind.value}", found, planted, is_met=found == planted)


def _goal(name: str, value: int, limit: int, *, is_met: bool) -> str:
    return f"goal {name} {value} {limit} {'met' if is_met else 'short'}"


def _shown(faults: Iterable[Fault], most: int) -> Iterator[str]:
    """The first faults of each kind, and how to have each again."""
    seen: Counter[str] = Counter()
    for check, seed, what in faults:
        seen[check] += 1
        if seen[check] <= most:
            yield f"\n{check}, seed {seed}: {what}"
            yield f"  again: python -m tests.properties.soak_clocks --seed {seed} --traces 1"


if __name__ == "__main__":
    sys.exit(main())
