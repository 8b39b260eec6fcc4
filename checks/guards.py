"""`except Exception` stands in one or two guards of the SDK, and nothing broader hides a fault."""

import ast
from collections.abc import Iterator
from pathlib import Path

from checks.syntax import last_name
from checks.tree import SDK, Module, modules
from checks.violation import Violation

GUARDS = 2  # reading attributes, emitting; one that serves both will do

Catcher = ast.ExceptHandler | ast.Call

_WHY = "a broad except hides faults; ours are two, counted and logged: reading attributes, emitting"
_FIX = "catch what can really be raised, or go through the guard"


def violations(root: Path) -> list[Violation]:
    """More than two broad excepts or none, or a bare or BaseException one that does not raise."""
    parts = [(module, handler) for module in modules(root, SDK) for handler in _broad(module)]
    swallowing = [(m, h) for m, h in parts if _catches(h) != "Exception" and not _raises(h)]
    guards = [(m, h) for m, h in parts if _catches(h) == "Exception"]
    found = [
        Violation(m.path, h.lineno, f"except {_catches(h)} that does not raise again", _WHY, _FIX)
        for m, h in swallowing
    ]
    if len(guards) > GUARDS:
        what = f"one of {len(guards)} places that catch Exception; {GUARDS} are allowed"
        found += [Violation(m.path, h.lineno, what, _WHY, _FIX) for m, h in guards]
    elif not guards:
        what = "no place that catches Exception: a fault of ours would reach the user"
        found.append(Violation(SDK, 0, what, _WHY, "give reading and emitting their guard"))
    return found


def _broad(module: Module) -> Iterator[Catcher]:
    """Handlers and `suppress()` calls that catch Exception or more."""
    for node in ast.walk(module.tree):
        if isinstance(node, Catcher) and _catches(node):
            yield node


def _catches(catcher: Catcher) -> str:
    """`BaseException` (a bare except too), `Exception`, or nothing broad."""
    names = {"BaseException" if kind is None else last_name(kind) for kind in _kinds(catcher)}
    broad = [name for name in ("BaseException", "Exception") if name in names]
    return broad[0] if broad else ""


def _kinds(catcher: Catcher) -> list[ast.expr] | list[ast.expr | None]:
    """The exception types that are caught; None stands for a bare except."""
    if isinstance(catcher, ast.Call):
        return catcher.args if last_name(catcher.func) == "suppress" else []
    return catcher.type.elts if isinstance(catcher.type, ast.Tuple) else [catcher.type]


def _raises(catcher: Catcher) -> bool:
    """Whether a handler ends by raising again what it caught."""
    last = catcher.body[-1] if isinstance(catcher, ast.ExceptHandler) else None
    return isinstance(last, ast.Raise) and last.exc is None
