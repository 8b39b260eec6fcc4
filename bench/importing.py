"""What an import takes on top of a program that has its libraries already, in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

PROGRAM: Final = """\
from openai import OpenAI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
OpenAI(api_key="key").chat.completions
"""
"""Has openai's client and the OTel SDK, as whoever instruments one has."""

_TIMED: Final = """\
{program}
import time
start_ns = time.process_time_ns()
{added}
print(time.process_time_ns() - start_ns)
"""


def import_ms(
    added: Mapping[str, str], rounds: Iterable[int], program: str = PROGRAM
) -> dict[str, float]:
    """Median CPU ms of lines that are added to a program, each time in a process of its own.

    Args:
        added: the lines, by name.
        rounds: the numbers of the rounds; in each, one process for each.
        program: what comes before them.
    """
    taken_ms: dict[str, list[float]] = {name: [] for name in added}
    with TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        for lines in added.values():
            _ms(
                _TIMED.format(program=program, added=lines), environment
            )  # Compiles what is compiled once.
        for _ in rounds:
            for name, lines in added.items():
                taken_ms[name].append(_ms(_TIMED.format(program=program, added=lines), environment))
    return {name: median(times) for name, times in taken_ms.items()}


def _environment(cache: Path) -> dict[str, str]:
    """As it is, but for what would change what is imported; bytecode is kept, as by default."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "LLMLAT_", "PYTHONDONTWRITEBYTECODE"))
    }
    return {**kept, "PYTHONPYCACHEPREFIX": str(cache)}


def _ms(program: str, environment: Mapping[str, str]) -> float:
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return int(ran.stdout.splitlines()[-1]) / 1e6
