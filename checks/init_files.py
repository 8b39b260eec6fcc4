"""Nothing is implemented in an `__init__.py` beyond the package's public functions."""

import ast
from pathlib import Path

from checks.tree import PRODUCT, modules
from checks.violation import Violation


def violations(root: Path) -> list[Violation]:
    """Statements of an `__init__.py` other than docstring, imports, dunders, public functions."""
    return [
        Violation(
            module.path,
            statement.lineno,
            "implementation in an __init__.py",
            "what a package exports is read first; how it works is read in the file that owns it",
            "move it to a module named after it and import it here if it is public",
        )
        for module in modules(root, *PRODUCT)
        if module.path.endswith("/__init__.py")
        for statement in module.tree.body
        if not _belongs(statement)
    ]


def _belongs(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return not statement.name.startswith("_")
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return all(isinstance(t, ast.Name) and t.id.startswith("__") for t in targets)
    if isinstance(statement, ast.If):  # if TYPE_CHECKING: imports
        return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in statement.body)
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_docstring or isinstance(statement, ast.Import | ast.ImportFrom)
