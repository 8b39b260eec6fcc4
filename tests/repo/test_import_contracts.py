"""Who may import whom: each contract catches a planted import, with the project's own config."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.repo.programs import Plant, run

# The architecture with nothing in it: every module that a contract names, and some that none does.
SKELETON = """
src/llmlat_otel: auto errors settings testing
src/llmlat_otel/core: recording recorder guard clock emit wrapping instrumentor propagation
src/llmlat_otel/instrumentors: openai httpx
collector_processor/llmlat_processor: model pipeline window profile service settings cli
collector_processor/llmlat_processor/clock_history: history saved
collector_processor/llmlat_processor/stages: assemble align_clocks annotate
collector_processor/llmlat_processor/stages/critical_path: calls walk
collector_processor/llmlat_processor/views: terminal page waterfall wording
collector_processor/llmlat_processor/edges: receiver exporter
semconv/llmlat_semconv: attributes phases
"""


class Row(NamedTuple):
    """An import that the contract forbids, planted at the end of a module of the skeleton."""

    name: str
    contract: str
    importer: str
    statement: str
    imported: str
    on_the_way: tuple[tuple[str, str], ...] = ()


ROWS = [
    Row(
        "the contract imports a library",
        "1-contract",
        "llmlat_semconv.attributes",
        "import yaml",
        "yaml",
    ),
    Row(
        "core imports an instrumentor",
        "2-sdk-layers",
        "llmlat_otel.core.wrapping",
        "from llmlat_otel.instrumentors import openai",
        "llmlat_otel.instrumentors",
    ),
    Row(
        "emit imports wrapping",
        "2-core-layers",
        "llmlat_otel.core.emit",
        "import llmlat_otel.core.wrapping",
        "llmlat_otel.core.wrapping",
    ),
    Row(
        "propagation imports emit, its neighbour",
        "2-core-layers",
        "llmlat_otel.core.propagation",
        "from llmlat_otel.core import emit",
        "llmlat_otel.core.emit",
    ),
    Row(
        "a new file in core has no place in the order",
        "2-core-layers",
        "llmlat_otel.core.novelty",
        "",
        "llmlat_otel.core.novelty",
    ),
    Row(
        "the recorder reads time",
        "3-recorder-reaches",
        "llmlat_otel.core.recorder",
        "from time import monotonic_ns",
        "time",
    ),
    Row(
        "the recorder reaches OpenTelemetry through a file in between",
        "3-recorder-reaches",
        "llmlat_otel.core.recorder",
        "import llmlat_otel.errors",
        "opentelemetry",
        (("llmlat_otel.errors", "from opentelemetry import trace"),),
    ),
    Row(
        "the recorder imports settings",
        "3-recorder-imports",
        "llmlat_otel.core.recorder",
        "import llmlat_otel.settings",
        "llmlat_otel.settings",
    ),
    Row(
        "an instrumentor imports another one",
        "4-instrumentors",
        "llmlat_otel.instrumentors.openai",
        "from llmlat_otel.instrumentors import httpx",
        "llmlat_otel.instrumentors.httpx",
    ),
    Row(
        "an instrumentor imports the library that it times",
        "4-instrumentors",
        "llmlat_otel.instrumentors.httpx",
        "def wrap() -> None:\n    import httpx",
        "httpx",
    ),
    Row(
        "a new instrumentor imports OpenTelemetry",
        "4-instrumentors",
        "llmlat_otel.instrumentors.novelty",
        "import opentelemetry.context",
        "opentelemetry",
    ),
    Row(
        "a stage imports another stage",
        "5-stages",
        "llmlat_processor.stages.critical_path.walk",
        "from llmlat_processor.stages import assemble",
        "llmlat_processor.stages.assemble",
    ),
    Row(
        "a stage reads the clock",
        "5-stages",
        "llmlat_processor.stages.align_clocks",
        "import time",
        "time",
    ),
    Row(
        "a new stage imports the wire format",
        "5-stages",
        "llmlat_processor.stages.novelty",
        "import llmlat_processor.wire",
        "llmlat_processor.wire",
        (("llmlat_processor.wire", ""),),
    ),
    Row(
        "what is known of clocks writes a file by itself",
        "5-clock-history",
        "llmlat_processor.clock_history.saved",
        "import os",
        "os",
    ),
    Row(
        "a view other than the terminal imports rich",
        "5-views",
        "llmlat_processor.views.page",
        "import rich.table",
        "rich",
    ),
    Row(
        "the window waits on an event loop",
        "5-pure",
        "llmlat_processor.window",
        "import asyncio",
        "asyncio",
    ),
    Row(
        "a new file of the processor opens a socket",
        "5-pure",
        "llmlat_processor.novelty",
        "import grpc",
        "grpc",
    ),
    Row(
        "the cli imports edges",
        "6-edges",
        "llmlat_processor.cli",
        "from llmlat_processor.edges import grpc_receiver",
        "llmlat_processor.edges",
    ),
    Row(
        "the pipeline imports service",
        "6-service",
        "llmlat_processor.pipeline",
        "import llmlat_processor.service",
        "llmlat_processor.service",
    ),
    Row(
        "the processor imports the SDK",
        "7-two-halves",
        "llmlat_processor.cli",
        "import llmlat_otel.auto",
        "llmlat_otel.auto",
    ),
    Row(
        "the SDK imports the processor",
        "7-two-halves",
        "llmlat_otel.testing",
        "import llmlat_processor.model",
        "llmlat_processor.model",
    ),
]

ALLOWED = {
    "llmlat_otel.instrumentors.openai": "import llmlat_otel.core.recorder, llmlat_semconv.phases",
    "llmlat_otel.core.recorder": "from llmlat_otel.core import recording",
    "llmlat_otel.core.clock": "import time\nimport llmlat_otel.core.recorder",
    "llmlat_processor.stages.critical_path.walk": (
        "from llmlat_processor.stages.critical_path import calls"
    ),
    "llmlat_processor.stages.annotate": "import dataclasses, llmlat_processor.model",
    "llmlat_processor.views.terminal": "import rich.table\nimport llmlat_processor.model",
    "llmlat_processor.views.page": "from llmlat_processor.views import waterfall, wording",
    "llmlat_processor.edges.grpc_receiver": "import grpc, time",
    "llmlat_processor.service": (
        "import llmlat_processor.edges.grpc_receiver, llmlat_processor.pipeline"
    ),
    "llmlat_processor.cli": "import llmlat_processor.service",
}


@pytest.fixture
def skeleton(plant: Plant, root: Path, tmp_path: Path) -> Path:
    """A tree with every module of the architecture, empty, and the project's configuration."""
    for line in SKELETON.split("\n"):
        folder, _, names = line.partition(": ")
        for name in ("__init__", *names.split()) if folder else ():
            plant(f"{folder}/{name}.py", "")
    plant("pyproject.toml", (root / "pyproject.toml").read_text(encoding="utf-8"))
    return tmp_path


def write(tree: Path, module: str, text: str) -> None:
    """Gives a module of the skeleton a text."""
    homes = {
        "llmlat_otel": "src",
        "llmlat_processor": "collector_processor",
        "llmlat_semconv": "semconv",
    }
    path = tree / homes[module.partition(".")[0]] / f"{module.replace('.', '/')}.py"
    path.write_text(f"{text}\n", encoding="utf-8")


def lint_imports(tree: Path, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the packages of a tree, ahead of the installed ones."""
    folders = [tree / "src", tree / "collector_processor", tree / "semconv", root]
    more = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "COLUMNS": "200"}
    tool = Path(sys.executable).with_name("lint-imports")
    return run(tool, "--no-logo", "--no-cache", *options, cwd=tree, more=more)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_planted_import_breaks_its_contract(row: Row, skeleton: Path, root: Path) -> None:
    for module, statement in (*row.on_the_way, (row.importer, row.statement)):
        write(skeleton, module, statement)
    result = lint_imports(skeleton, root, "--contract", row.contract)
    assert result.returncode == 1, result.stdout + result.stderr
    assert row.importer in result.stdout
    assert row.imported in result.stdout
    assert "0 kept, 1 broken" in result.stdout


def test_what_the_architecture_allows_is_allowed(skeleton: Path, root: Path) -> None:
    for module, statement in ALLOWED.items():
        write(skeleton, module, statement)
    result = lint_imports(skeleton, root)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_contract_has_been_seen_to_break(root: Path) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    ids = {line.split('"')[1] for line in text.splitlines() if line.startswith('id = "')}
    assert ids == {row.contract for row in ROWS}


def test_this_repository_keeps_every_contract(root: Path) -> None:
    result = lint_imports(root, root)
    assert result.returncode == 0, result.stdout + result.stderr
