"""No file names a folder of the machine that it was written on."""

import re
from pathlib import Path

from checks.tree import text_files
from checks.violation import Violation

_MACHINE_PATH = re.compile(r"(?<![\w.~/*-])/(?:work|tmp|root|home|Users|mnt)/[\w.-]+")


def violations(root: Path) -> list[Violation]:
    """Absolute paths below work, tmp, root, home, Users or mnt in any text file."""
    return [
        Violation(
            path,
            number,
            f"the path {found.group()}",
            "it exists on one machine only",
            "a path relative to the repository, or one made by tmp_path or tempfile",
        )
        for path, text in text_files(root)
        for number, line in enumerate(text.splitlines(), 1)
        for found in _MACHINE_PATH.finditer(line)
    ]
