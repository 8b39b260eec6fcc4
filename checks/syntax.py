"""Questions that several rules ask of a syntax tree."""

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every imported dotted name with its line: `from a.b import c` is `a.b.c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def docstrings(tree: ast.AST) -> set[int]:
    """The `id()` of every node that is a docstring."""
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | Definition))
    return {
        id(first.value)
        for owner in owners
        if owner.body and isinstance(first := owner.body[0], ast.Expr)
    }


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is the package itself or lies below it."""
    return name == package or name.startswith(f"{package}.")


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c` and of `c`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
