"""What a public module exports is written down, sorted, complete and documented."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checks.syntax import Definition, last_name
from checks.tree import CONTRACT, PROCESSOR, SDK, Module, modules
from checks.violation import Violation

# These must have an `__all__`; any other module that has one is held to the same.
PUBLIC = (f"{SDK}/__init__.py", f"{SDK}/errors.py", f"{SDK}/testing.py")

_WHY = "the exports are the contract with whoever imports us"


def violations(root: Path) -> list[Violation]:
    """An `__all__` that is absent, unsorted, incomplete, or names what has no docstring."""
    tree = {module.path: module for module in modules(root, SDK, PROCESSOR, CONTRACT)}
    return [v for module in tree.values() for v in _in_module(module, tree)]


def exported(module: Module) -> list[str] | None:
    """The names of `__all__` as written, or None where there is none."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and last_name(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    return None


def sort_key(name: str) -> tuple[int, list[str | int]]:
    """CONSTANTS, then Classes, then functions, each in natural order (what ruff sorts by)."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _in_module(module: Module, tree: dict[str, Module]) -> Iterator[Violation]:
    names = exported(module)
    if names is None:
        if module.path in PUBLIC:
            yield _violation(module, "a public module without __all__", "list what it exports")
        return
    if names != sorted(set(names), key=sort_key):
        yield _violation(module, "__all__ is not sorted", "`make fix` sorts it")
    for name in sorted(_public_names(module) - set(names)):
        yield _violation(module, f"{name} is public but not in __all__", "add it, or _prefix it")
    for name in names:
        yield from _undocumented(module, name, tree)


def _undocumented(module: Module, name: str, tree: dict[str, Module]) -> Iterator[Violation]:
    if name not in _bound(module):
        yield _violation(module, f"__all__ names {name}, which does not exist", "remove it")
    elif (definition := _definition(module, name, tree)) and not ast.get_docstring(definition):
        yield _violation(module, f"{name} is exported without a docstring", "say what it does")


def _violation(module: Module, what: str, fix: str) -> Violation:
    return Violation(module.path, 1, what, _WHY, fix)


def _public_names(module: Module) -> set[str]:
    """Public functions and classes; in an `__init__.py` what it imports from us as well."""
    defined = {s.name for s in module.tree.body if isinstance(s, Definition)}
    taken = _imported(module) if module.path.endswith("/__init__.py") else {}
    ours = {name for name, source in taken.items() if source.startswith("llmlat_")}
    return {name for name in defined | ours if not name.startswith("_")}


def _bound(module: Module) -> set[str]:
    assigned = {
        node.id
        for statement in module.tree.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    defined = {s.name for s in module.tree.body if isinstance(s, Definition)}
    return assigned | defined | set(_imported(module))


def _imported(module: Module) -> dict[str, str]:
    """Top-level imported names -> the module that they come from."""
    return {
        alias.asname or alias.name: statement.module or ""
        for statement in module.tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _definition(module: Module, name: str, tree: dict[str, Module]) -> Definition | None:
    """Where a name is defined, followed through our own modules; None outside or for a value."""
    for statement in module.tree.body:
        if isinstance(statement, Definition) and statement.name == name:
            return statement
    source = _imported(module).get(name, "").replace(".", "/")
    homes = [
        m for path, m in tree.items() if source and re.search(rf"/{source}(/__init__)?\.py$", path)
    ]
    return _definition(homes[0], name, tree) if homes and homes[0] is not module else None
