"""The command `python -m tests.fuzz`: damaged requests, and what they do to us and to others."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from bench.progress import Progress
from llmlat_processor.garbage import relax_collector
from tests.fuzz.rounds import Fault, Tally, fuzz

REQUESTS: Final = 1_000_000
CHUNK: Final = 250

GOALS: Final[Mapping[str, str]] = {
    "raised": "raised",
    "refused-though-sound": "refused",
    "changed-though-sound": "changed",
    "kept-though-unreadable": "kept",
    "damage-untold": "part",
    "json-misread": "json",
    "changed-by-dividing": "divided",
    "changed-on-the-way": "passing",
    "neighbours-touched": "neighbour",
}
"""Which check must have found nothing."""

EXAMPLES: Final = """\
examples:
  make fuzz                                          1,000,000 requests, some minutes
  python -m tests.fuzz --requests 10000              a look, in seconds
  python -m tests.fuzz --seed 70123 --requests 1     one request again, with all of its faults

Ends with one line per goal, `goal NAME VALUE LIMIT met|short`; the exit status is 1 where one is
short, and 130 after Ctrl-C.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, and say what was found; the exit status."""
    asked = _parser().parse_args(arguments)
    seeds = range(asked.seed, asked.seed + asked.requests)
    tally, progress = Tally(), Progress()
    is_whole = False
    try:
        for part in _parts(seeds, asked.jobs):
            tally.add(part)
            done = tally.counts["requests"]
            progress.note(f"{done:,} of {asked.requests:,} requests, {len(tally.faults)} faults")
        is_whole = True
    except KeyboardInterrupt:
        pass
    progress.note("")
    print("\n".join(_report(tally, asked.requests, asked.faults)))
    if not is_whole:
        print("stopped before its end", file=sys.stderr)
        return 130
    return 1 if tally.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description="Send damaged requests through the processor, beside a client with sound ones.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--requests", type=_positive, default=REQUESTS, metavar="N", help="how many"
    )
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
        yield from map(fuzz, chunks)
        return
    with multiprocessing.Pool(jobs, initializer=_start) as pool:
        yield from pool.imap(fuzz, chunks)


def _start() -> None:
    """Ctrl-C goes to every process of a terminal; the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    relax_collector()


def _report(tally: Tally, asked: int, shown: int) -> Iterator[str]:
    counts = tally.counts
    yield ", ".join(f"{count:,} {what}" for what, count in counts.items())
    yield from _shown(tally.faults, shown)
    yield _goal("requests", counts["requests"], asked, is_met=counts["requests"] >= asked)
    for name, check in GOALS.items():
        value = sum(fault.check == check for fault in tally.faults)
        yield _goal(name, value, 0, is_met=value == 0)


def _goal(name: str, value: int, limit: int, *, is_met: bool) -> str:
    return f"goal fuzz-{name} {value} {limit} {'met' if is_met else 'short'}"


def _shown(faults: Iterable[Fault], most: int) -> Iterator[str]:
    """The first faults of each kind, and how to have each again."""
    seen: Counter[str] = Counter()
    for check, seed, what in faults:
        seen[check] += 1
        if seen[check] <= most:
            yield f"\n{check}, seed {seed}: {what}"
            yield f"  again: python -m tests.fuzz --seed {seed} --requests 1"


if __name__ == "__main__":
    sys.exit(main())
