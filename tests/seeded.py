"""A command that holds properties to what is made of many seeds: work, progress, faults, goals."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.progress import Progress

CHUNK: Final = 250
"""Seeds of one stretch of work."""

INTERRUPTED: Final = 130


class Fault(NamedTuple):
    """What does not hold of what was made of a seed."""

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


@dataclass(frozen=True, slots=True)
class Command:
    """What is told of it, and done.

    Attributes:
        module: its name after `python -m`.
        what: it makes of seeds, as an option and in words: `traces`.
        description: in one sentence.
        examples: for `--help`.
        amount: of seeds, unless told otherwise.
        work: makes and checks them.
        start: of each process that shares the work.
        report: what was found, in lines, the goals at the end; of how many seeds were asked for.
    """

    module: str
    what: str
    description: str
    examples: str
    amount: int
    work: Callable[[range], Tally]
    start: Callable[[], object]
    report: Callable[[Tally, int, Sequence[str]], Iterable[str]]

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """Do it, and say what was found; the exit status."""
        asked = self._parser().parse_args(arguments)
        amount: int = getattr(asked, self.what)
        tally, progress = Tally(), Progress()
        is_whole = False
        try:
            for part in self._parts(range(asked.seed, asked.seed + amount), asked.jobs):
                tally.add(part)
                done = f"{tally.counts[self.what]:,} of {amount:,} {self.what}"
                progress.note(f"{done}, {len(tally.faults)} faults")
            is_whole = True
        except KeyboardInterrupt:
            pass
        progress.note("")
        shown = [*self._shown(tally.faults, asked.faults)]
        print("\n".join(self.report(tally, amount, shown)))
        if not is_whole:
            print("stopped before its end", file=sys.stderr)
            return INTERRUPTED
        return 1 if tally.faults else 0

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=self.description,
            epilog=self.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        cores = os.cpu_count() or 1
        for name, default, words in (
            (self.what, self.amount, "how many"),
            ("jobs", cores, "processes"),
            ("faults", 5, "how many of each kind are shown"),
        ):
            parser.add_argument(
                f"--{name}", type=_positive, default=default, metavar="N", help=words
            )
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first one")
        return parser

    def _parts(self, seeds: range, jobs: int) -> Iterator[Tally]:
        chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
        if jobs == 1 or len(chunks) == 1:
            yield from map(self.work, chunks)
            return
        with multiprocessing.Pool(jobs, initializer=_started, initargs=(self.start,)) as pool:
            yield from pool.imap(self.work, chunks)

    def _shown(self, faults: Iterable[Fault], most: int) -> Iterator[str]:
        """The first faults of each kind, and how to have each again."""
        seen: Counter[str] = Counter()
        for check, seed, what in faults:
            seen[check] += 1
            if seen[check] <= most:
                yield f"\n{check}, seed {seed}: {what}"
                yield f"  again: python -m {self.module} --seed {seed} --{self.what} 1"


def goal(name: str, value: int, limit: int, *, is_met: bool) -> str:
    """One line that a program can read."""
    return f"goal {name} {value} {limit} {'met' if is_met else 'short'}"


def clean(tally: Tally, goals: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A goal for each set of checks that must have found nothing."""
    for name, checks in goals.items():
        value = sum(fault.check in checks for fault in tally.faults)
        yield goal(name, value, 0, is_met=value == 0)


def _started(start: Callable[[], object]) -> None:
    """Ctrl-C goes to every process of a terminal; the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
