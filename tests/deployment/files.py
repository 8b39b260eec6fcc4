"""What is shipped to operators, as the tests of this folder read it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "collector_processor"
OTELCOL: Final = SHIPPED / "otelcol"

Mapping = dict[str, Any]


def documents(path: Path) -> list[Mapping]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def program(name: str) -> str:
    """A program of our environment."""
    return str(Path(sys.executable).with_name(name))
