"""The command `python -m tests.fuzz`: damaged requests, and what they do to us and to others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.garbage import relax_collector
from tests.fuzz.rounds import fuzz
from tests.seeded import Command, Tally, clean, goal

REQUESTS: Final = 1_000_000

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


def _report(tally: Tally, asked: int, shown: Sequence[str]) -> Iterator[str]:
    counts = tally.counts
    yield ", ".join(f"{count:,} {what}" for what, count in counts.items())
    yield from shown
    yield goal("fuzz-requests", counts["requests"], asked, is_met=counts["requests"] >= asked)
    yield from clean(tally, {f"fuzz-{name}": (check,) for name, check in GOALS.items()})


COMMAND: Final = Command(
    module="tests.fuzz",
    what="requests",
    description="Send damaged requests through the processor, beside a client with sound ones.",
    examples=EXAMPLES,
    amount=REQUESTS,
    work=fuzz,
    start=relax_collector,
    report=_report,
)


if __name__ == "__main__":
    sys.exit(COMMAND.run())
