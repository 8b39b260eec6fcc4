"""A dataclass of the product has slots."""

import ast
from pathlib import Path

from checks.syntax import last_name
from checks.tree import PRODUCT, modules
from checks.violation import Violation


def violations(root: Path) -> list[Violation]:
    """Dataclasses of the SDK and the processor that do not say `slots=True`."""
    return [
        Violation(
            module.path,
            node.lineno,
            f"dataclass {node.name} without slots",
            "values are small, many and closed: nobody adds a field from outside",
            "@dataclass(frozen=True, slots=True); state that changes is a plain class with slots",
        )
        for module in modules(root, *PRODUCT)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and any(_is_slotless(decorator) for decorator in node.decorator_list)
    ]


def _is_slotless(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return last_name(decorator) == "dataclass"
    said = {keyword.arg: keyword.value for keyword in decorator.keywords}
    slots = said.get("slots")
    has_slots = isinstance(slots, ast.Constant) and slots.value is True
    return last_name(decorator.func) == "dataclass" and not has_slots
