"""This checkout as if it was installed beside an engine, whichever checkout set the engine up."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BUILD: Final = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
_OURS: Final = ("OTEL_", "LLMLAT_", "VLLM_", "PYTHON", "COVERAGE_")


def python_path(folder: Path) -> str:
    """`PYTHONPATH` with our packages and their metadata, which name our entry points.

    The metadata are made anew, of `pyproject.toml` as it is now, in a folder of the test's own.
    """
    command = [sys.executable, "-c", _BUILD, str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(folder / built.stdout.split()[-1]) as wheel:
        metadata = [name for name in wheel.namelist() if ".dist-info/" in name]
        wheel.extractall(folder / "metadata", metadata)
    places = (ROOT / "src", ROOT / "semconv", folder / "metadata")
    return os.pathsep.join(str(place) for place in places)


def bare_environment() -> Mapping[str, str]:
    """Our variables less those that tell OpenTelemetry, vLLM, Python or us what to do."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}


def sends_to(url: str) -> dict[str, str]:
    """The variables that have a program send its spans to an OTLP/HTTP receiver, and soon."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
