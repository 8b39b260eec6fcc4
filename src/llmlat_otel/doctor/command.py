"""The command line of the doctor: which patient, and how to tell."""

# ruff: noqa: PLC0415 - the SDK is imported when it is to be examined, and not to read files
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from llmlat_otel.doctor.findings import Finding, Report, findings
from llmlat_otel.doctor.text import Style, finding_lines, other_lines, process_lines
from llmlat_otel.settings import HEALTH
from llmlat_otel.vitals import keep_to_ourselves

if TYPE_CHECKING:
    from llmlat_otel.doctor.examination import Other

FINE: Final = 0
WRONG: Final = 1
USAGE: Final = 2

EXAMPLES: Final = """\
examples:
  llmlat doctor                           what would be timed here, and a test span
  llmlat doctor -- python app.py          run a program, then say how it went
  llmlat doctor --health FOLDER           processes that run with LLMLAT_HEALTH=FOLDER
  llmlat doctor --json

a program's output is its own; with --json the report is the last line

exit codes: 0 fine, 1 something is wrong, 2 wrong usage
"""

_WRITTEN_BY: Final = "it is written by programs that run with LLMLAT_HEALTH=PATH"
_NOT_IMPORTED: Final = Finding(
    "the program has not imported llmlat_otel",
    "import llmlat_otel.auto in it, or run it by opentelemetry-instrument",
)


def main(argv: Sequence[str]) -> int:
    """Say what is timed, where spans go and what went wrong.

    Args:
        argv: Arguments without the command's name.

    Returns:
        The exit code. Wrong usage raises SystemExit(2), as argparse does.
    """
    keep_to_ourselves()
    own, command = _split(argv)
    parser = _parser()
    arguments = parser.parse_args(own)
    if command is not None and (not command or arguments.health is not None):
        parser.error("give a command after --, or --health PATH, or neither")
    if command is not None:
        return _tell(_ran(command), as_json=arguments.json)
    if arguments.health is not None:
        return _tell(_read(Path(arguments.health)), as_json=arguments.json)
    return _tell(_examined(), as_json=arguments.json)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What is said to us, and the command after `--`; None without it."""
    said = list(argv)
    if "--" not in said:
        return said, None
    at = said.index("--")
    return said[:at], said[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="llmlat doctor",
        usage="llmlat doctor [-h] [--json] [--health PATH | -- COMMAND ...]",
        description=(main.__doc__ or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--health", metavar="PATH", help="a file or folder that LLMLAT_HEALTH names elsewhere"
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON instead of text")
    return parser


class _Told(NamedTuple):
    """What is to be told.

    Attributes:
        reports: Of each process.
        found: What there is to know of them.
        answers: What destinations said of a test span.
        others: Other instrumentations.
    """

    reports: Sequence[Report]
    found: Sequence[Finding]
    answers: Sequence[Finding] = ()
    others: Sequence[Other] = ()


def _examined() -> _Told:
    from llmlat_otel.doctor.examination import examine

    report, others, answers = examine()
    of_spans = {"destinations": ()}  # Their answers say it.
    return _Told([report], findings({**report, "spans": of_spans}), answers, others)


def _ran(command: Sequence[str]) -> _Told:
    """Run a program that shows its health, and its processes theirs."""
    with tempfile.TemporaryDirectory(prefix="llmlat-doctor-") as folder:
        try:
            process = subprocess.Popen(command, env={**os.environ, HEALTH: f"{folder}/"})
        except OSError as error:
            return _Told([], [Finding(f"{command[0]} cannot be run: {error.strerror}")])
        code = _waited(process)
        told = _read(Path(folder), _NOT_IMPORTED)
    if code:
        how = f"with exit code {code}" if code > 0 else f"by signal {-code}"
        return told._replace(found=[Finding(f"the program has ended {how}"), *told.found])
    return told


def _waited(process: subprocess.Popen[bytes]) -> int:
    """The program's exit code; Ctrl-C is for the program, which has got it as well."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _read(path: Path, when_none: Finding | None = None) -> _Told:
    """What processes have written."""
    files = sorted(path.glob("llmlat-*.json")) if path.is_dir() else [path]
    reports, found = [], []
    for file in files:
        try:
            reports.append(_parsed(file.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            found.append(Finding(f"{file} cannot be read: {error}", _WRITTEN_BY))
    if not files:
        found.append(when_none or Finding(f"{path} holds no health of any process", _WRITTEN_BY))
    return _Told(reports, [*found, *_found_in(reports)])


def _parsed(text: str) -> Report:
    """A report.

    Raises:
        ValueError: It is none.
    """
    report: Report = json.loads(text)
    try:
        findings(report)
        list(process_lines(report, Style(has_color=False)))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it is no health of a process") from error
    return report


def _found_in(reports: Sequence[Report]) -> Iterator[Finding]:
    for report in reports:
        for each in findings(report):
            who = f"process {report.get('pid')}: " if len(reports) > 1 else ""
            yield each._replace(what=f"{who}{each.what}")


def _tell(told: _Told, *, as_json: bool) -> int:
    wrong = [each for each in (*told.found, *told.answers) if each.is_wrong]
    if as_json:
        print(json.dumps(_document(told)), flush=True)
        return WRONG if wrong else FINE
    style = Style(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    for report in told.reports:
        print("\n".join(process_lines(report, style)))
    for line in (
        *other_lines(told.others, style),
        *finding_lines("test span", told.answers, style),
        *finding_lines("findings", told.found, style),
    ):
        print(line)
    print(style.title("something is wrong" if wrong else "all is well"), flush=True)
    return WRONG if wrong else FINE


def _document(told: _Told) -> Mapping[str, object]:
    return {
        "processes": told.reports,
        "other_instrumentations": [each._asdict() for each in told.others],
        "test_span": [each._asdict() for each in told.answers],
        "findings": [each._asdict() for each in told.found],
    }
