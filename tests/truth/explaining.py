"""What the product says of a scenario's spans: its own commands, as a user runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final

from tests.truth.comparison import compared
from tests.truth.drift import DRIFTING, DriftCheck, drift_checks, rate_ppb
from tests.truth.report import Outcome
from tests.truth.staging import LLMLAT, Seen
from tests.truth.truth import Truth

WINDOW_S: Final = 3_600
"""For `llmlat clocks`: windows begin at multiples of it, and a run in two of them shows less."""


class ExplainingError(Exception):
    """One of the product's commands failed, or left something out."""


def explained(seen: Seen) -> Outcome:
    """Compare what was seen of a scenario with what the product says of it.

    Raises:
        ExplainingError: it failed, or says nothing of a trace.
    """
    truth = Truth(seen)
    said = _llmlat("show", "--json", str(seen.spans)).splitlines()
    documents = {document["trace_id"]: document for document in map(json.loads, said)}
    missing = [run.trace_id for run in truth.runs if run.trace_id not in documents]
    if missing:
        raise ExplainingError(f"llmlat show says nothing of {len(missing)} traces")
    return Outcome(compared(truth, documents), _drift(seen, truth))


def _drift(seen: Seen, truth: Truth) -> tuple[DriftCheck, ...]:
    if not truth.scenario.drift_ppm:
        return ()
    app = truth.clocks["app"]
    first, last = (app.machine_ns(truth.runs[end].began_ns) for end in (0, -1))
    said = _llmlat("clocks", "--json", "--window", str(WINDOW_S), str(seen.spans))
    document: Mapping[str, Any] = json.loads(said)
    checks = drift_checks(rate_ppb(truth.clocks[DRIFTING], first, last), document)
    if not checks:
        raise ExplainingError("llmlat clocks says nothing of the clock that drifts")
    return tuple(checks)


def _llmlat(*arguments: str) -> str:
    done = subprocess.run(
        [LLMLAT, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ExplainingError(f"llmlat {arguments[0]} failed: {done.stderr.strip()[-400:]}")
    return done.stdout
