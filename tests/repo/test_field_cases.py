"""Every report from the field that is in our areas has a test that names its id."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.syntax import functions, last_name
from checks.tree import Module, modules
from tests.repo.programs import Plant

ROOT = Path(__file__).parents[2]
FIELD = ROOT / "tests" / "cases" / "field.jsonl"
KEYS = {"area", "date", "id", "link", "minimal_input", "right_behaviour", "source", "symptom"}
REPORTS = [json.loads(line) for line in FIELD.read_text(encoding="utf-8").splitlines()]
IDS = [report["id"] for report in REPORTS]

# `test_st_01_...`, or "ST-01: ..." as the name of a row; ST-011 and BEST-01 are other ids.
_ID = re.compile(r"(?<![A-Z0-9])([A-Z]{2})[-_](\d{2})(?![0-9])")


def named(root: Path) -> set[str]:
    """The ids that the tests of a tree name.

    A test names one in its function's name or in the ids of its rows: in what `parametrize` is
    given, or in a table of the module that it is given. Comments and docstrings name nothing.
    """
    return {name for module in modules(root, "tests") for name in _named_in(module)}


def _named_in(module: Module) -> Iterator[str]:
    for function in functions(module.tree):
        if function.name.startswith("test_"):
            yield from _ids(function.name.upper())
            for decorator in function.decorator_list:
                if isinstance(decorator, ast.Call) and last_name(decorator.func) == "parametrize":
                    yield from _ids_of_rows(decorator, module.tree)


def _ids_of_rows(parametrize: ast.Call, tree: ast.Module) -> Iterator[str]:
    """Literals among the rows and ids, and in the module's tables that these are taken from."""
    given = [node for part in _parts(parametrize) for node in ast.walk(part)]
    wanted = {node.id for node in given if isinstance(node, ast.Name)}
    for statement in tree.body:
        if wanted & {node.id for node in _targets(statement)}:
            given += ast.walk(statement)
    for node in given:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _ids(node.value)


def _parts(call: ast.Call) -> list[ast.expr]:
    return [*call.args[1:], *(keyword.value for keyword in call.keywords)]


def _targets(statement: ast.stmt) -> Iterator[ast.Name]:
    assigned: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        assigned = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        assigned = [statement.target]
    return (target for target in assigned if isinstance(target, ast.Name))


def _ids(text: str) -> Iterator[str]:
    return (f"{found[1]}-{found[2]}" for found in _ID.finditer(text))


def test_the_reports_are_whole_and_none_is_there_twice() -> None:
    assert [report["id"] for report in REPORTS if set(report) != KEYS] == []
    assert sorted(IDS) == sorted(set(IDS))
    assert all(_ID.fullmatch(name) for name in IDS)


def test_every_report_from_the_field_has_a_test_that_names_it() -> None:
    missing = sorted(set(IDS) - named(ROOT))
    assert missing == [], f"no test names {', '.join(missing)}"


NAMES = {
    "a test's name": "def test_st_01_a_stream_ends() -> None: ...\n",
    "the id of a row": '@parametrize("x", [1], ids=["ST-01: closed"])\ndef test_x(x): ...\n',
    "a row's own id": '@parametrize("x", [pytest.param(1, id="ST-01")])\ndef test_x(x): ...\n',
    "a table of rows": 'T = {"ST-01": 1}\n@parametrize("x", T, ids=T)\ndef test_x(x): ...\n',
    "a typed table": 'T: D = {"ST-01": 1}\n@parametrize("x", T, ids=T)\nasync def test_x(x): ...\n',
}


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_what_names_a_report(text: str, plant: Plant, tmp_path: Path) -> None:
    plant("tests/test_planted.py", text)
    assert named(tmp_path) == {"ST-01"}


NAMES_NOTHING = {
    "a comment": "# ST-01\ndef test_x() -> None: ...\n",
    "a docstring": 'def test_x() -> None:\n    """ST-01."""\n',
    "a function that is no test": "def st_01() -> None: ...\n",
    "a table that no test is given": 'T = ["ST-01"]\ndef test_x() -> None: ...\n',
    "another id": "def test_best_01_and_st_011_and_st_1() -> None: ...\n",
}


@pytest.mark.parametrize("text", NAMES_NOTHING.values(), ids=NAMES_NOTHING)
def test_what_names_none(text: str, plant: Plant, tmp_path: Path) -> None:
    plant("tests/test_planted.py", text)
    assert named(tmp_path) == set()
