"""The command: `python -m bench`, which runs the benchmarks and says which goals are met."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from bench import clocks, engines, gateway, hop, machine, page, paths, peers, pipeline, sdk, soak
from bench.progress import Progress
from bench.report import Report

SOAK: Final = "soak"
BENCHES: Final = {
    "paths": paths,
    "clocks": clocks,
    "pipeline": pipeline,
    "hop": hop,
    "sdk": sdk,
    "gateway": gateway,
    "peers": peers,
    "page": page,
    "engines": engines,
    SOAK: soak,
}
BY_DEFAULT: Final = [name for name in BENCHES if name not in {"engines", "hop", "page", SOAK}]
"""Without what takes long, and what needs a browser, a Collector or an engine."""

_EXAMPLES: Final = """\
examples:
  python -m bench                   all of them but engines, hop, page and soak
  python -m bench paths sdk         two of them
  python -m bench pipeline --quick  a rough answer in seconds
  python -m bench --json > now.json for a program

Every benchmark ends with one line per goal, `goal NAME VALUE LIMIT met|short`. The exit status is
0 either way: how fast a machine is today is no fault of the code.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; the exit status."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in BENCHES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHES)}")
    progress = Progress()
    if not asked.json:
        print(_header(), flush=True)
    reports = []
    for name in dict.fromkeys(asked.names or BY_DEFAULT):
        reports.append(BENCHES[name].run(progress, quick=asked.quick))
        if not asked.json:
            print(f"\n── {name}: {BENCHES[name].SUMMARY}\n\n{reports[-1]}", flush=True)
    if asked.json:
        print(json.dumps(_document(reports), indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:9} {bench.SUMMARY}" for name, bench in BENCHES.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Measure what the processor and the SDK cost.\n\n{listed}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="which ones; by default all but engines, hop, page, soak",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: rough numbers, soon")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    return parser


def _header() -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions().items())
    return f"{versions}\n{machine.cpu()}, load {machine.load():.1f}"


def _document(reports: Sequence[Report]) -> dict[str, object]:
    return {
        "versions": machine.versions(),
        "cpu": machine.cpu(),
        "load": machine.load(),
        "reports": [report.as_json() for report in reports],
    }


if __name__ == "__main__":
    sys.exit(main())
