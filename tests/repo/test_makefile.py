"""The Makefile starts from plain python3, and says what is missing where it cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.programs import Plant, run

STAND_IN = "#!/bin/sh\ncase \"$2\" in *'{fails}'*) exit 1;; esac\nexit 0\n"


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs make in a folder, without the variables of a make or an environment around us."""
    hidden = [name for name in os.environ if name.startswith(("MAKE", "MFLAGS", "UV_"))]
    unset = [part for name in hidden for part in ("-u", name)]
    return run("env", *unset, "make", *arguments, cwd=folder)


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("version_info", "is not a Python >= 3.10"),
        ("ensurepip", "has no venv or no ensurepip"),
    ],
    ids=["a python that is too old", "a python without ensurepip"],
)
def test_a_python_that_will_not_do_is_refused_in_words(
    fails: str, says: str, plant: Plant, root: Path, tmp_path: Path
) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    plant("pyproject.toml", "")
    plant("uv.lock", "")
    plant("oldpython", STAND_IN.format(fails=fails)).chmod(0o755)
    result = make(tmp_path, "test", "PYTHON=./oldpython")
    assert result.returncode != 0
    assert f"error: './oldpython' {says}" in result.stderr
    assert not (tmp_path / ".venv").exists()


def test_make_alone_lists_the_targets(root: Path) -> None:
    printed = make(root).stdout
    for target in (
        "demo",
        "example",
        "test",
        "check",
        "semconv",
        "bench",
        "test-integration",
        "engines",
    ):
        assert f"make {target} " in printed


def test_the_engine_of_the_demo_can_be_chosen(root: Path) -> None:
    assert "demo.py --engine emulated" in make(root, "-n", "demo", "ENGINE=emulated").stdout


def test_the_example_can_be_chosen(root: Path) -> None:
    assert "offline.py fastapi-app" in make(root, "-n", "example", "NAME=fastapi-app").stdout
    assert "offline.py one-import" in make(root, "-n", "example").stdout


def test_check_runs_every_part(root: Path) -> None:
    printed = make(root, "-n", "check").stdout
    parts = ("format --check", "ruff check", "mypy", "lint-imports", "-m checks", "check.py")
    assert [part for part in (*parts, "generate.py --check") if part not in printed] == []


def test_the_real_peers_are_a_stage_of_their_own_and_the_tests_say_so(root: Path) -> None:
    assert "make test-integration" in make(root, "-n", "test").stdout.splitlines()[-1]
    assert "build.py" not in make(root, "-n", "test").stdout
    printed = make(root, "-n", "test-integration", "GO=/opt/go/bin/go").stdout
    built, tested = printed.index("build.py --go '/opt/go/bin/go'"), printed.index("-m peers")
    assert built < tested


def test_the_peers_are_built_without_the_environment(root: Path, tmp_path: Path) -> None:
    for part in ("Makefile", "tests/peers", "examples/jaeger"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).symlink_to(root / part)
    result = make(tmp_path, "peers", "GO=no-such-go")
    assert result.returncode != 0
    assert "error: there is no 'no-such-go'. Install Go 1." in result.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_engines_are_a_stage_of_their_own_and_the_tests_say_so(root: Path) -> None:
    plain = make(root, "-n", "test").stdout
    assert "make test-engines" in plain
    assert "tests.engines.build" not in plain
    for target, works in (("test-engines", "-m engines"), ("bench-engines", "bench engines")):
        printed = make(root, "-n", target).stdout
        assert printed.index("-m tests.engines.build") < printed.index(works)


def test_ci_runs_check_and_test(root: Path) -> None:
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    assert "make --keep-going check" in script
    for stage in (
        "make test",
        "make soak-sdk",
        "make soak",
        "make fuzz",
        "make test-faults",
        "make test-page",
        "make peers",
        "make test-integration",
        "make engines",
        "make test-engines",
    ):
        assert f'stage "{stage}"' in script
    assert os.access(root / ".ci" / "run", os.X_OK)
