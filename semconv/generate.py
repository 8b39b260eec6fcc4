"""Writes everything that follows from the model: Python, the page of phases, concrete names."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import yaml

import compatibility
import concrete_model
import phase_page
import python_source
from problems import UnreadableContractError
from registry import Registry
from resolve import load

SEMCONV = Path(__file__).resolve().parent
PACKAGE = "semconv/llmlat_semconv"


def generated(registry: Registry) -> dict[str, str]:
    """Every generated file of a contract: path from the repository's root, and whole text."""
    sources = python_source.modules(registry)
    files = {f"{PACKAGE}/{name}": _formatted(name, text) for name, text in sources.items()}
    files["semconv/model/concrete.yaml"] = concrete_model.text(registry)
    files["docs/phases.md"] = phase_page.text(registry)
    return files


def _formatted(name: str, source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", name, "-"]
    # From the repository's root, so that the project's own settings apply.
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, check=False, cwd=SEMCONV.parent
    )
    if done.returncode:
        raise UnreadableContractError(f"{name}: ruff format: {done.stderr.strip()}")
    return done.stdout


def stale(registry: Registry, root: Path) -> list[str]:
    """The generated files under a repository's root that differ from what they should say."""
    return [file for file, text in generated(registry).items() if _read(root / file) != text]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def write(registry: Registry, root: Path) -> None:
    """Writes every generated file under a repository's root."""
    for file, text in generated(registry).items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def snapshot(registry: Registry, semconv: Path, version: str, *, force: bool) -> str:
    """Writes the resolved registry as a released version; returns what was done, or why not.

    Raises:
        FileExistsError: That version is released already and `force` is not given.
        ValueError: The model is of another version.
    """
    if version != registry.version:
        raise ValueError(f"the model is version {registry.version}, not {version}")
    path = semconv / "snapshots" / f"{version}.yaml"
    if path.exists() and not force:
        raise FileExistsError(f"{path.name} is released: bump the version in model/manifest.yaml")
    path.parent.mkdir(exist_ok=True)
    content = yaml.safe_dump(
        compatibility.snapshot_of(registry), sort_keys=False, allow_unicode=True, width=100
    )
    path.write_text(
        f"# The contract as released in {version}. Never edited: check.py holds later ones to it.\n"
        + content,
        encoding="utf-8",
    )
    return f"wrote {path.name}"


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; 1 if a file is stale")
    parser.add_argument("--snapshot", metavar="VERSION", help="write snapshots/VERSION.yaml too")
    parser.add_argument("--force", action="store_true", help="overwrite a released snapshot")
    parser.add_argument("--root", type=Path, default=SEMCONV.parent, help="the repository's root")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 stale or refused, 2 the model cannot be read."""
    arguments = _arguments(argv)
    semconv = arguments.root / "semconv"
    try:
        registry = load(semconv)
        if arguments.check:
            return _report_stale(stale(registry, arguments.root))
        if arguments.snapshot:
            print(snapshot(registry, semconv, arguments.snapshot, force=arguments.force))
        write(registry, arguments.root)
    except UnreadableContractError as error:
        print(error, file=sys.stderr)
        return 2
    except (FileExistsError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _report_stale(files: list[str]) -> int:
    for file in files:
        print(f"{file}: stale. Run `make semconv` and commit the result.", file=sys.stderr)
    return 1 if files else 0


if __name__ == "__main__":
    raise SystemExit(main())
