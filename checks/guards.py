"""`except Exception` stands in one or two guards of the SDK, and nothing broader hides a fault.

What is called through the guard is given all that it needs by position: a guard that took keywords
for others would raise itself where a library has one of the same name.
"""

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

_THROUGH_THE_GUARD = {"guarded", "replaced"}


def violations(root: Path) -> list[Violation]:
    """More than two broad excepts or none, a bare or BaseException one that does not raise.

    And keywords that are to pass through the guard.
    """
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
    return found + [v for module in modules(root, SDK) for v in _keywords(module)]


def _keywords(module: Module) -> Iterator[Violation]:
    """Calls of the guard with keywords."""
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and node.keywords)
    for call in calls:
        if last_name(call.func) in _THROUGH_THE_GUARD:
            what = f"{last_name(call.func)}() with keywords"
            why = "the guard takes none: it would raise, and nothing is around it"
            fix = "guarded(target, functools.partial(work, *args, **kwargs))"
            yield Violation(module.path, call.lineno, what, why, fix)


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
