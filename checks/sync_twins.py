"""No function is written twice, once for sync and once for async."""

import ast
import re
from pathlib import Path

from checks.syntax import Function, functions
from checks.tree import PRODUCT, modules
from checks.violation import Violation

STATEMENTS = 6  # shorter ones are the protocols' own pairs, such as __next__ and __anext__

_ASYNC_WORD = re.compile(r"\b(?:async|await) ")

_SYNC_NAME = {
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
    "anext": "next",
    "aiter": "iter",
}


def violations(root: Path) -> list[Violation]:
    """Async functions whose body, without `await` and `async`, is a sync function's as well."""
    bodies = [(m.path, f, _as_sync(f)) for m in modules(root, *PRODUCT) for f in functions(m.tree)]
    sync = {
        body: f"{path}:{function.lineno}"
        for path, function, body in bodies
        if body and isinstance(function, ast.FunctionDef)
    }
    return [
        Violation(
            path,
            function.lineno,
            f"async {function.name}() is a twin of the sync function at {sync[body]}",
            "twins drift: a fault gets mended in one of them",
            "decide once, at inspect.isawaitable(result), and share what follows",
        )
        for path, function, body in bodies
        if isinstance(function, ast.AsyncFunctionDef) and body in sync
    ]


def _as_sync(function: Function) -> str:
    """The body's text as a sync function would have it; empty if it is too short to matter."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if sum(isinstance(node, ast.stmt) for s in body for node in ast.walk(s)) < STATEMENTS:
        return ""
    text = _ASYNC_WORD.sub("", ast.unparse(ast.Module(body=body, type_ignores=[])))
    return re.sub(r"\w+", lambda word: _SYNC_NAME.get(word.group(), word.group()), text)
