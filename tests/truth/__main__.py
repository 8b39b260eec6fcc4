"""The command: `make truth`, which runs hosts and compares what is said of them to the truth."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from bench import machine
from bench.progress import Progress
from children import INTERRUPTS, ChildError
from tests.truth.explaining import ExplainingError, explained
from tests.truth.network import RigError, hosts, obstacle, versions
from tests.truth.report import Outcome, as_json, goals, markdown, put_into, tables
from tests.truth.scenarios import HOSTS, SCENARIOS, Scenario
from tests.truth.staging import played

WRONG: Final = 1
CANNOT: Final = 2
INTERRUPTED: Final = 130

_EXAMPLES: Final = """\
examples:
  make truth                                        all scenarios, about three minutes
  make truth ARGS='quick step'                      two of them
  make truth ARGS='--write docs/truth.md'           and the tables into that page
  make truth ARGS=--json > now.json                 for a program

It ends with one line per goal, `goal NAME VALUE LIMIT met|short`.

exit codes: 0 it ran; 1 a true offset or drift is outside its interval, or a finding that had to be
there is not (not for an error of a delay alone: how fast a machine is today is no fault of the
code); 2 it cannot run here or wrong usage; 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenarios that were asked for; the exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    chosen = [scenario for scenario in SCENARIOS if scenario.name in (asked.names or _names())]
    if unknown := set(asked.names) - set(_names()):
        parser.error(f"no scenario {min(unknown)!r}; there are {', '.join(_names())}")
    if asked.write and not asked.write.is_file():
        parser.error(f"no file {asked.write}")
    if reason := obstacle():
        print(f"error: {reason}", file=sys.stderr)
        return CANNOT
    for each in INTERRUPTS:
        signal.signal(each, _interrupted)
    try:
        return _run(chosen, as_document=asked.json, page=asked.write)
    except (RigError, ChildError, ExplainingError, ValueError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        print("Interrupted; all hosts are taken down.", file=sys.stderr)
        return INTERRUPTED


def _run(chosen: Sequence[Scenario], *, as_document: bool, page: Path | None) -> int:
    outcomes = []
    for outcome in _outcomes(chosen):
        outcomes.append(outcome)
        if not as_document:
            print(f"{_told(outcome)}\n", flush=True)
    made = goals(outcomes)
    if as_document:
        scenarios = [as_json(outcome) for outcome in outcomes]
        lines = [str(goal) for goal in made]
        print(json.dumps({"versions": _versions(), "scenarios": scenarios, "goals": lines}))
    else:
        print("\n".join(map(str, made)))
    if page:
        made_with = ", ".join(f"{name} {version}" for name, version in _versions().items())
        text = put_into(page.read_text("utf-8"), markdown(outcomes, made_with))
        page.write_text(text, encoding="utf-8")
    return WRONG if any(outcome.is_wrong for outcome in outcomes) else 0


def _outcomes(chosen: Sequence[Scenario]) -> Iterator[Outcome]:
    """Run them one by one; what is measured goes before all else that the machine does."""
    progress = Progress()
    with suppress(OSError):
        os.nice(-20)
    with hosts(HOSTS) as made, tempfile.TemporaryDirectory(prefix="llmlat-truth-") as folder:
        for number, scenario in enumerate(chosen, 1):
            place = Path(folder) / scenario.name
            place.mkdir()
            before = f"scenario {number} of {len(chosen)}, "
            seen = played(scenario, made, place, _noting(progress, before))
            progress.note(f"{before}{scenario.name}: comparing")
            outcome = explained(seen)
            progress.note("")
            yield outcome


def _noting(progress: Progress, before: str) -> Callable[[str], None]:
    return lambda what: progress.note(before + what)


def _told(outcome: Outcome) -> str:
    scenario, comparison = outcome.scenario, outcome.comparison
    traces = f"{comparison.traces} traces"
    if comparison.stalled:
        traces += f", {comparison.stalled} left out: the machine stood still"
    head = f"── {scenario.name}: {scenario.says} ({traces})"
    return "\n\n".join([head, *map(str, tables(outcome))])


def _versions() -> dict[str, str]:
    known = machine.versions()
    ours = {name: known[name] for name in ("python", "llmlat-otel", "opentelemetry-sdk", "openai")}
    return {**ours, **versions()}


def _names() -> list[str]:
    return [scenario.name for scenario in SCENARIOS]


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {scenario.name:11} {scenario.says}" for scenario in SCENARIOS)
    parser = argparse.ArgumentParser(
        prog="make truth",
        usage="make truth [ARGS='[--json] [--write PAGE] [NAME ...]']",
        description="Compare what is said of delays and clocks to what really happened, on hosts "
        f"in network and time namespaces. Needs root.\n\n{listed}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; by default all")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the tables into a page, between its marks"
    )
    return parser


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C ends a program: by way of whatever has to be cleaned up, and once is enough."""
    for each in INTERRUPTS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
