"""Tests never skip, never sleep outside tests/integration, and can fail."""

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.syntax import functions, last_name
from checks.tree import Module, modules
from checks.violation import Violation

_SKIPS = {"skip", "skipif", "importorskip", "xfail"}
_REAL = "tests/integration/"  # real servers take real time
_JUDGES = ("assert", "check", "expect", "raises", "warns", "fail", "verify")


def violations(root: Path) -> list[Violation]:
    """Skips anywhere, sleeps outside tests/integration, tests without a judgement."""
    return [v for module in modules(root, "tests") for v in _in_module(module)]


def _in_module(module: Module) -> Iterator[Violation]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and _skips(node):
            why = "a skipped test is a claim that nobody checks"
            fix = "make it run, or drop it"
            yield Violation(module.path, node.lineno, f"pytest {node.attr}", why, fix)
        if isinstance(node, ast.Call) and _sleeps(node) and not module.path.startswith(_REAL):
            why = "a test that waits is slow on a good day and wrong on a bad one"
            yield Violation(module.path, node.lineno, "a sleep", why, "pass the clock as a value")
    for function in functions(module.tree):
        if function.name.startswith("test_") and not _judges(function):
            why = "a test that cannot fail tests nothing"
            what = f"{function.name} asserts nothing"
            yield Violation(module.path, function.lineno, what, why, "assert what it shows")


def _skips(node: ast.Attribute) -> bool:
    return node.attr in _SKIPS and last_name(node.value) in {"pytest", "mark"}


def _sleeps(call: ast.Call) -> bool:
    """`sleep(anything)`; `asyncio.sleep(0)` only lets others run."""
    only_yields = [getattr(argument, "value", None) for argument in call.args] == [0]
    return last_name(call.func) == "sleep" and not only_yields


def _judges(function: ast.AST) -> bool:
    calls = (n.func for n in ast.walk(function) if isinstance(n, ast.Call))
    named = any(last_name(call).lstrip("_").startswith(_JUDGES) for call in calls)
    return named or any(isinstance(n, ast.Assert) for n in ast.walk(function))
