"""What was measured on: versions and the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.instrumentations import PEERS

_DISTRIBUTIONS: Final = (
    "llmlat-otel",
    "opentelemetry-sdk",
    "openai",
    "httpx2",
    "protobuf",
    "grpcio",
    "wrapt",
    *(peer.distribution for peer in PEERS.values()),
)


def versions() -> dict[str, str]:
    """Name to version, the interpreter first."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"python": python, **{name: version(name) for name in _DISTRIBUTIONS}}


def cpu() -> str:
    """Model and number of cores."""
    return f"{_cpu_model()}, {os.cpu_count()} cores"


def load() -> float:
    """Mean number of runnable tasks over the last minute; above the cores, numbers are noisy."""
    return os.getloadavg()[0]


def _cpu_model() -> str:
    """From the kernel where it says so (proc_cpuinfo(5)); platform knows only the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
