"""docs/sdk.md names every variable, attribute, header and function of the SDK, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import llmlat_otel
from checks.syntax import imports
from checks.tree import SDK, Module, modules
from llmlat_otel.instrumentation import INSTRUMENTORS
from llmlat_otel.settings import PhasesMode
from llmlat_semconv import attributes, events, metrics
from llmlat_semconv.aliases import TGI, Surface
from llmlat_semconv.metrics import Metric
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import StreamEnd

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sdk.md").read_text(encoding="utf-8")
CODE = tuple(modules(ROOT, SDK))

# Others' names are read to recognise their spans, and are never written.
READS_OTHERS = f"{SDK}/core/foreign.py"


def section(title: str) -> str:
    """The part of the page below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def shown(pattern: str, text: str = PAGE) -> set[str]:
    """What stands in backticks and is shaped so."""
    return {each for each in re.findall(r"`([^`\n]+)`", text) if re.fullmatch(pattern, each)}


def literals(pattern: str, *paths: str) -> set[str]:
    """String literals of the SDK, or of some of its files, that are shaped so."""
    return {
        node.value
        for module in CODE
        if not paths or module.path in paths
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(pattern, node.value)
    }


def written() -> set[str]:
    """Names of the contract that the SDK writes: attributes, events and metrics."""
    return {
        name for module in CODE if module.path != READS_OTHERS for name in _contract_names(module)
    }


def _contract_names(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="names"), attr=constant):
                yield getattr(attributes, constant)
    for _, name in imports(module.tree):
        for part in (events, metrics):
            if name.startswith(f"{part.__name__}."):
                found = getattr(part, name.rpartition(".")[2])
                yield from [found.name] if isinstance(found, Metric) else []
                yield from [found] if isinstance(found, str) else []


def test_every_variable_that_is_read_is_in_the_table_and_no_other() -> None:
    table = set(re.findall(r"^\| `(LLMLAT_[A-Z_]+)` \|", section("Settings"), re.MULTILINE))
    assert table == literals(r"LLMLAT_[A-Z_]+")
    assert set(re.findall(r"LLMLAT_[A-Z_]+", PAGE)) == table


def test_every_name_that_is_written_is_listed_and_no_other() -> None:
    listed = shown(r"[a-z_]+(\.[a-z_]+)+", section("What is captured, and what never is"))
    by_phase = {duration_attribute(phase) for phase in Phase}  # made from the phase's own name
    assert listed - by_phase == written()


def test_every_header_that_is_read_is_listed_and_no_other() -> None:
    header = r"[a-z]+(-[a-z]+)+"
    phases = (each for each in TGI.on(Surface.RESPONSE_HEADER) if each.phase is not None)
    of_tgi = {each.key for each in TGI.marks} | {each.key for each in phases}
    read = literals(header, f"{SDK}/core/reported.py")
    assert shown(header, section("What peers report")) == read | of_tgi


def test_every_end_of_a_stream_is_listed() -> None:
    ends = {each.value for each in StreamEnd}
    assert shown("|".join(ends), section("The end of a stream")) == ends


def test_every_library_and_every_form_of_phases_is_listed() -> None:
    assert set(INSTRUMENTORS) <= shown(r"\w+", section("What is timed"))
    assert {each.value for each in PhasesMode} <= shown(r"\w+", section("Settings"))


@pytest.mark.parametrize("name", llmlat_otel.__all__)
def test_every_public_function_is_explained(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\(", PAGE)
