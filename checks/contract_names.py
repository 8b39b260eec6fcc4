"""Names of attributes, events and metrics are written in the contract and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.syntax import docstrings
from checks.tree import CONTRACT, Module, modules
from checks.violation import Violation

FOLDERS = ("src", "collector_processor", "bench", "examples", "tests")

# Tests about the contract and about this rule have to spell names out.
EXEMPT = ("tests/llmlat_semconv/", "tests/repo/")

_OURS = re.compile(r"(?<![\w/.-])(?:llmlat|gen_ai)\.(?:[a-z]|$)")
_DOTTED = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)+")


def violations(root: Path) -> list[Violation]:
    """String literals shaped like an attribute of ours, or equal to any dotted contract name."""
    names = _contract_names(root)
    return [
        Violation(
            module.path,
            node.lineno,
            f"the literal {node.value!r} looks like a name of the contract",
            "a name in two places drifts; the contract is where names are defined",
            "import the constant from llmlat_semconv (or add it to semconv/model, then "
            "`make semconv`)",
        )
        for module in modules(root, *FOLDERS)
        if not module.path.startswith(EXEMPT)
        for node in _literals(module)
        if isinstance(node.value, str) and (_OURS.search(node.value) or node.value in names)
    ]


def _literals(module: Module) -> Iterator[ast.Constant]:
    """String literals, the fixed parts of f-strings included, docstrings not."""
    skipped = docstrings(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and id(node) not in skipped:
            yield node


def _contract_names(root: Path) -> set[str]:
    return {
        node.value
        for module in modules(root, CONTRACT)
        for node in _literals(module)
        if isinstance(node.value, str) and _DOTTED.fullmatch(node.value)
    }
