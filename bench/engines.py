"""What timing costs an engine: CPU per generated token of a real vLLM, with us in it and without.

    a round   vLLM alone │ with the plugin │ with each step         each a turn of 8 answers
    a round   with the plugin │ with each step │ vLLM alone         spans ──> counting end
    ...

All turns are in one process, each some hundred milliseconds long, so that whatever else the machine
does meanwhile is in all of them. A ratio is that of a round. Needs `make engines`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path
from statistics import median
from typing import Final

from bench.engine_turns import ALONE, STEPS, TIMED
from bench.processes import ProcessError, free_address, started
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table

SUMMARY: Final = "CPU per generated token of vLLM, with the plugin and without"

LIMITS: Final = {TIMED: 1.02, STEPS: 1.05}
NAMES: Final = {TIMED: "engine_cpu", STEPS: "engine_cpu_with_steps"}
ANSWERS: Final = (256, 64)
"""Tokens of an answer: what is made once a request weighs less in a long one. Goals: the first."""

_ROUNDS: Final = {256: 60, 64: 120}
_QUICK: Final = 5
_PATIENCE_S: Final = 900
_DOUBT: Final = 0.05
_ROOT: Final = Path(__file__).parents[1]

Taken = Mapping[str, Sequence[float]]
"""µs of CPU per token, by kind of turn, a value a round."""


def run(progress: Progress, *, quick: bool) -> Report:
    """Measure.

    Args:
        progress: is told what is run.
        quick: whether a rough answer will do.
    """
    tables: list[Table] = []
    said: list[str] = []
    reached: list[Goal] = []
    with tempfile.TemporaryDirectory() as where:
        for answer in ANSWERS:
            progress.note(f"engines: answers of {answer} tokens")
            taken = _taken(Path(where), _QUICK if quick else _ROUNDS[answer], answer)
            tables.append(_table(taken, answer))
            said += notes(taken, answer)
            reached += goals(taken) if answer == ANSWERS[0] else []
    return Report("engines", tables, reached, said)


def _taken(folder: Path, rounds: int, answer: int) -> Taken:
    """Run the turns in the environment of the engine."""
    from tests.engines import parts  # noqa: PLC0415 - nobody else needs an engine
    from tests.engines.vllm_server import variables  # noqa: PLC0415

    address = free_address()
    with started(
        [sys.executable, "-m", "bench.hop_ends", "count", address], folder / "end.log"
    ) as end:
        end.listening(address)
        environment = variables(
            PYTHONPATH=":".join(str(_ROOT / each) for each in ("src", "semconv", "")),
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{address}",
            OTEL_EXPORTER_OTLP_INSECURE="true",
        )
        words = (str(parts.model()), str(rounds), str(answer))
        done = subprocess.run(
            [str(parts.vllm_python()), "-m", "bench.engine_turns", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    if done.returncode:
        raise ProcessError(f"the engine ended with {done.returncode}\n{done.stderr[-2_000:]}")
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def ratios(taken: Taken, name: str) -> list[float]:
    """What one took of what vLLM alone took in the same round, smallest first."""
    return sorted(ours / alone for ours, alone in zip(taken[name], taken[ALONE], strict=True))


def goals(taken: Taken) -> Sequence[Goal]:
    """What is to be reached."""
    return [
        Goal(NAMES[name], median(ratios(taken, name)), limit, "x") for name, limit in LIMITS.items()
    ]


def notes(taken: Taken, answer: int) -> Sequence[str]:
    """How sure the ratios are, whatever their distribution."""
    said = []
    for name in LIMITS:
        low, high, sure = interval(ratios(taken, name))
        of = f"{name}, answers of {answer}"
        said.append(f"{of}: {low:.3f} to {high:.3f} of vLLM alone, sure by {sure:.1f} %")
    return said


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Where the median of all such values lies, by the sign test; how sure that is, in percent.

    Args:
        values: independent ones, smallest first.

    Returns:
        The narrowest of two of the values that is sure by 95 %, or the widest there is.
    """
    count = len(values)
    below, outside = 0, 2 / 2**count
    while below + 1 < count // 2 and outside + 2 * comb(count, below + 1) / 2**count <= _DOUBT:
        below += 1
        outside += 2 * comb(count, below) / 2**count
    return values[below], values[count - 1 - below], 100 * (1 - outside)


def _table(taken: Taken, answer: int) -> Table:
    rows: list[list[Cell]] = []
    for name, each in taken.items():
        ratio = "-" if name == ALONE else f"{median(ratios(taken, name)):.3f}"
        rows.append([name, median(each), min(each), max(each), ratio])
    columns = ["", "µs/token", "least", "most", "of alone"]
    heading = (
        f"CPU per generated token, answers of {answer} tokens, {len(taken[ALONE])} rounds; medians"
    )
    return Table(heading, columns, rows)
