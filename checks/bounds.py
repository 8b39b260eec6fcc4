"""Bounds on size: modules of at most 400 lines, functions of at most 50, median at most 10."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

from checks.syntax import Function, functions
from checks.tree import CONTRACT, EVERYTHING, PRODUCT, Module, modules
from checks.violation import Violation

MODULE_LINES = 400
FUNCTION_LINES = 50
MEDIAN_LINES = 10

_WHY = "a file is read top-down in one sitting, a function at a glance"


def violations(root: Path) -> list[Violation]:
    """Modules, functions and medians over the bounds; generated modules may be long."""
    found = [v for module in modules(root, *EVERYTHING) for v in _in_module(module)]
    return found + [v for part in PRODUCT for v in _median_of(root, part)]


def lines_of(function: Function) -> int:
    """Lines from `def` to the last one, docstring included, decorators not."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _in_module(module: Module) -> Iterator[Violation]:
    length = len(module.text.splitlines())
    if length > MODULE_LINES and not module.path.startswith(CONTRACT):
        what = f"module of {length} lines, more than {MODULE_LINES}"
        yield Violation(module.path, length, what, _WHY, "split it by what its parts own")
    for function in functions(module.tree):
        if lines_of(function) > FUNCTION_LINES:
            what = f"{function.name}() has {lines_of(function)} lines, more than {FUNCTION_LINES}"
            fix = "name its steps as functions"
            yield Violation(module.path, function.lineno, what, _WHY, fix)


def _median_of(root: Path, part: str) -> Iterator[Violation]:
    lengths = [lines_of(f) for module in modules(root, part) for f in _outermost(module.tree)]
    if lengths and (median := statistics.median(lengths)) > MEDIAN_LINES:
        what = f"median function of {median:g} lines, more than {MEDIAN_LINES}"
        yield Violation(part, 0, what, _WHY, "name the steps of the longest functions")


def _outermost(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods, without those defined inside another function."""
    inner = {id(n) for f in functions(tree) for n in ast.walk(f) if n is not f}
    return (f for f in functions(tree) if id(f) not in inner)
