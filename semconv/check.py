"""Says whether the contract keeps its own rules, and its promises to released versions."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from compatibility import compatibility_problems, released_snapshots
from documents import TEMPLATES, read_document, read_model
from problems import Problem, UnreadableContractError
from resolve import load
from rules import rule_problems
from shape import shape_problems

SEMCONV = Path(__file__).resolve().parent


def problems(root: Path) -> list[Problem]:
    """Everything wrong with the contract in a folder, in the order in which it should be mended.

    Raises:
        UnreadableContractError: A file is missing or is not YAML.
    """
    found = shape_problems(read_model(root), read_document(root, TEMPLATES))
    if found:
        return found
    registry = load(root)
    return rule_problems(registry) or compatibility_problems(registry, released_snapshots(root))


def weaver_status(root: Path) -> int:
    """Runs `weaver registry check` where weaver is installed; 0 where it is not."""
    weaver = shutil.which("weaver")
    if weaver is None:
        return 0
    return subprocess.run(
        [weaver, "registry", "check", "--registry", str(root / "model")], check=False
    ).returncode


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=SEMCONV, help="the contract's folder")
    parser.add_argument("--no-weaver", action="store_true", help="never run weaver")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line: 0 all well, 1 a rule or a promise is broken, 2 cannot be read."""
    arguments = _arguments(argv)
    try:
        found = problems(arguments.root)
    except UnreadableContractError as error:
        print(error, file=sys.stderr)
        return 2
    for problem in found:
        print(problem, file=sys.stderr)
    weaver = 0 if arguments.no_weaver else weaver_status(arguments.root)
    return 1 if found or weaver else 0


if __name__ == "__main__":
    raise SystemExit(main())
