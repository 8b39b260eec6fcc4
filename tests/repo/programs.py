"""Programs that tests about the repository run, and files that they plant."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Plant = Callable[[str, str], Path]
"""Writes a file: path relative to the test's own folder, text."""


def run(
    *command: str | Path, cwd: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder, with more variables than ours; its output is kept as text."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(more or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def run_well(*command: str | Path, cwd: Path, more: Mapping[str, str] | None = None) -> str:
    """What a program printed that has to succeed; a failure shows all of it."""
    done = run(*command, cwd=cwd, more=more)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
