"""The sweep: makes every seam fail, one at a time, in a process of its own; reports as JSON."""

from __future__ import annotations

import argparse
import gc
import json
import re
import sys
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

from tests.integration.seams.handovers import HANDOVERS, LEFTOVERS
from tests.integration.seams.rewriting import EACH, Site, seams
from tests.integration.seams.trials import RUNS, Run, Seen, Trials

GUARDS = re.compile(r"llmlat_otel\.core\.guard\.(guarded|note_fault|replaced)$")
"""What stops faults; a fault in it is stopped by itself."""

CANNOT_FAIL = re.compile(
    r"builtins\.|contextlib\.|functools\.|typing\.|_thread\.R?[lL]ock|_asyncio\.Future|collections\.deque"
    r"|weakref\.ReferenceType\(\)"
)
"""Where callees are from that do not fail on what we give them."""


LEFT = "is left"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a fault has done."""

    site: str
    run: str
    nth: int
    what: str


@dataclass(slots=True)
class Report:
    """What the sweep has found.

    Attributes:
        seams: How many were made to fail.
        faults: How often.
        unreached: Modules of core and instrumentors that have seams, of which none was reached.
        troubles: Where anything was noticed.
        needed: The exceptions from the rule that there is nothing to notice.
    """

    seams: int = 0
    faults: int = 0
    unreached: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)


class Sweep:
    """One pass over the seams.

    Args:
        trials: Runs the programs.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._reaching: dict[int, dict[Run, int]] = {}
        self._usual: dict[Run, Seen] = {}
        self._trigger: dict[int, int] = {}
        self.report = Report()

    def find(self) -> None:
        """Run every program without a fault: which seams does it reach, and how often?"""
        for run in RUNS:
            seen = self._trials.run(run, seams.watch, seams.disarm)
            self._usual[run] = seen
            for number, count in seams.reached.items():
                self._reaching.setdefault(number, {})[run] = count
            for what in differences(seen, self._trials.plain[run]):
                self.report.troubles.append(Trouble("no fault", str(run), 0, what))
        self._find_guard()
        reached = {seams.sites[number].module for number in self._reaching}
        every = {site.module for site in seams.sites if site.is_call}
        self.report.unreached = sorted(
            each for each in every - reached if each.startswith(("core.", "instrumentors."))
        )

    def _find_guard(self) -> None:
        """What is reached only because of a fault."""
        run, clock = RUNS[0], "time.monotonic_ns"
        readings = (each for each in self.numbers() if seams.callees[each] == clock)
        self._trigger = {next(each for each in readings if run in self._reaching[each]): EACH}

        def prepare() -> None:
            seams.arm(self._trigger)
            seams.watch()

        self._trials.run(run, prepare, seams.disarm)
        for number, count in seams.reached.items():
            self._reaching.setdefault(number, {run: count})

    def numbers(self) -> list[int]:
        """The seams: what was reached, can fail, and is not the guard; one of what is the same."""
        seen = {_key(number): number for number in self._reaching if self._is_seam(number)}
        return sorted(seen.values())

    def _is_seam(self, number: int) -> bool:
        callee = seams.callees[number]
        return not (
            seams.sites[number].is_call and (GUARDS.match(callee) or CANNOT_FAIL.match(callee))
        )

    def try_out(self, number: int) -> None:
        """Make a seam fail in some of the programs that reach it."""
        site = seams.sites[number]
        troubles = [
            Trouble(str(site), str(run), nth, what)
            for run, nth in self._trials_of(number)
            for what in self._failed(number, run, nth)
        ]
        self.report.seams += 1
        for trouble in troubles:
            exception = _exception(site, trouble)
            if exception is None:
                self.report.troubles.append(trouble)
            elif exception not in self.report.needed:
                self.report.needed.append(exception)

    def _trials_of(self, number: int) -> Iterator[tuple[Run, int]]:
        """The first program that reaches it, in several ways, and one with the other client.

        The choice is the same for as long as the seam is, whatever changes around it.
        """
        reaching = self._reaching[number]
        runs = sorted(reaching, key=RUNS.index)
        others = [run for run in runs if run.is_async is not runs[0].is_async] or runs
        for run in dict.fromkeys(
            (runs[0], others[crc32(repr(_key(number)).encode()) % len(others)])
        ):
            count = reaching[run]
            for nth in {1, EACH} if run is runs[0] and count > 1 else {count}:
                yield run, nth

    def _failed(self, number: int, run: Run, nth: int) -> Iterator[str]:
        """What a fault does, and leaves behind in this thread's context variables."""
        return copy_context().run(lambda: iter([*self._noticed(number, run, nth)]))

    def _noticed(self, number: int, run: Run, nth: int) -> Iterator[str]:
        is_guard = seams.sites[number].where.startswith("core.guard.")
        ways = {number: nth, **(self._trigger if is_guard else {})}
        seen = self._trials.run(run, lambda: seams.arm(ways), seams.disarm)
        self.report.faults += 1
        yield from differences(seen, self._trials.plain[run])
        if seams.injected and not seen.faults and not is_guard:
            yield "the fault was not counted"
        if nth > 1 or run is not next(iter(self._reaching[number])):
            return
        usual, after = self._usual[RUNS[0]], self._trials.next(RUNS[0])
        if (after.said, after.notes, after.spans) != (usual.said, usual.notes, usual.spans):
            yield f"the next call is another: {after.notes} {after.spans}"


def differences(seen: Seen, plain: Seen) -> Iterator[str]:
    """What tells a run from the one without the SDK."""
    if seen.said != plain.said:
        yield f"the application sees: {_difference(seen.said, plain.said)}"
    if seen.notes != plain.notes:
        yield f"is noticed: {seen.notes[:3]}"
    if seen.left:
        yield f"{LEFT}: {sorted(set(seen.left))[:3]}"


def _exception(site: Site, trouble: Trouble) -> str | None:
    """The exception that a trouble falls under."""
    if site.what in HANDOVERS:
        return site.what
    place = f"{site.where} {site.what}"
    return place if trouble.what.startswith(LEFT) and place in LEFTOVERS else None


def _key(number: int) -> tuple[str, str]:
    site = seams.sites[number]
    return site.where, site.what


def _difference(said: str, plain: str) -> str:
    pairs: list[tuple[Any, Any]] = list(zip(json.loads(said), json.loads(plain), strict=False))
    at = next((here for here, (one, other) in enumerate(pairs) if one != other), len(pairs))
    return f"step {at}: {json.dumps(json.loads(said)[at : at + 1])[:300]}"


def main() -> None:
    """Try out a part of the seams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1", help="which part of the seams, of how many")
    parser.add_argument("--only", default="", help="a piece of a seam's name")
    options = parser.parse_args()
    trials = Trials()
    gc.collect()
    gc.freeze()  # The programs collect garbage of their own.
    sweep = Sweep(trials)
    sweep.find()
    part, parts = map(int, options.part.split("/"))
    for number in sweep.numbers()[part::parts]:
        if options.only in str(seams.sites[number]):
            sweep.try_out(number)
    json.dump(asdict(sweep.report), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
