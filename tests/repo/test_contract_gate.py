"""`make check` refuses generated files that are stale, and a contract that breaks its promises."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.programs import run

GENERATED = ["semconv/llmlat_semconv/attributes.py", "docs/phases.md"]


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """The contract and the documents that are generated from it, to be spoiled."""
    for folder in ("semconv", "docs"):
        shutil.copytree(root / folder, tmp_path / folder)
    return tmp_path


def semconv(root: Path, tool: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a tool of the contract."""
    return run(sys.executable, root / "semconv" / tool, *arguments, cwd=root)


def test_an_untouched_copy_passes(root: Path, copy: Path) -> None:
    fresh = semconv(root, "generate.py", "--check", "--root", copy)
    kept = semconv(root, "check.py", "--no-weaver", "--root", copy / "semconv")
    assert (fresh.returncode, fresh.stderr) == (0, "")
    assert (kept.returncode, kept.stderr) == (0, "")


@pytest.mark.parametrize("file", GENERATED)
def test_a_generated_file_edited_by_hand_is_stale(file: str, root: Path, copy: Path) -> None:
    with (copy / file).open("a", encoding="utf-8") as edited:
        edited.write("\n# by hand\n")
    result = semconv(root, "generate.py", "--check", "--root", copy)
    assert result.returncode == 1
    assert result.stderr.startswith(f"{file}: stale.")


def test_a_generated_file_that_is_missing_is_stale(root: Path, copy: Path) -> None:
    (copy / GENERATED[0]).unlink()
    result = semconv(root, "generate.py", "--check", "--root", copy)
    assert result.returncode == 1
    assert GENERATED[0] in result.stderr


def test_a_released_name_that_is_spelled_anew_is_refused(root: Path, copy: Path) -> None:
    for path in (copy / "semconv" / "model").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("llmlat.stream.end", "llmlat.stream.ending"), encoding="utf-8")
    result = semconv(root, "check.py", "--no-weaver", "--root", copy / "semconv")
    assert result.returncode == 1
    assert "llmlat.stream.end" in result.stderr
