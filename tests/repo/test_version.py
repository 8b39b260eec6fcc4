"""The version is written twice: in the project and, for a fast import, in the SDK."""

from pathlib import Path

from checks.packaging_files import toml
from llmlat_otel.version import VERSION


def test_the_sdk_says_the_version_of_the_project(root: Path) -> None:
    project = toml((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
