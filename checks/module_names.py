"""No module is named after nothing in particular."""

from pathlib import Path, PurePosixPath

from checks.tree import EVERYTHING, modules
from checks.violation import Violation

FORBIDDEN = frozenset({"common", "helpers", "misc", "patch", "types", "utils"})


def violations(root: Path) -> list[Violation]:
    """Modules and packages whose name owns nothing: utils, helpers, common, patch, types, misc."""
    return [
        Violation(
            module.path,
            1,
            f"a module named {name}",
            "such a file owns nothing, so everything ends up in it",
            "name it after the thing that it owns",
        )
        for module in modules(root, *EVERYTHING)
        for name in PurePosixPath(module.path).with_suffix("").parts
        if name.strip("_") in FORBIDDEN
    ]
