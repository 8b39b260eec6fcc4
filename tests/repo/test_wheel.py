"""The wheel holds the three packages, and works in an environment that has nothing else."""

import sys
import zipfile
from pathlib import Path

import pytest

from llmlat_processor.views.page.drawing import SCRIPTS
from tests.repo.programs import run_well

PACKAGES = ("llmlat_otel", "llmlat_processor", "llmlat_semconv")
UV = str(Path(sys.executable).with_name("uv"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree by the locked hatchling."""
    folder = tmp_path_factory.mktemp("wheel")
    root = Path(__file__).parents[2]
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    run_well(*build, cwd=root)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment's Python: the wheel, the locked dependencies of `processor`, no more."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    root = Path(__file__).parents[2]
    place = {"UV_PROJECT_ENVIRONMENT": str(environment)}
    locked = ("sync", "--frozen", "--no-install-project", "--extra", "processor")
    run_well(UV, *locked, "--python", sys.executable, cwd=root, more=place)
    python = environment / "bin" / "python"
    run_well(UV, "pip", "install", "--no-deps", "--python", python, wheel, cwd=wheel.parent)
    return python


def test_the_wheel_holds_three_typed_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        *PACKAGES,
        "llmlat_otel-0.1.0.dist-info",
    }
    assert [f"{package}/py.typed" in names for package in PACKAGES] == [True, True, True]
    assert "llmlat_otel-0.1.0.dist-info/licenses/LICENSE" in names
    page = "llmlat_processor/views/page"
    assert {f"{page}/{name}" for name in ("page.css", *SCRIPTS)} <= {*names}


def test_all_three_packages_import_from_the_new_environment(python: Path, tmp_path: Path) -> None:
    code = f"import {', '.join(PACKAGES)}\nfor p in ({', '.join(PACKAGES)}): print(p.__file__)"
    homes = run_well(python, "-c", code, cwd=tmp_path).split()
    assert [Path(home).is_relative_to(python.parents[1]) for home in homes] == [True, True, True]


def test_the_one_import_works_in_the_new_environment(python: Path, tmp_path: Path) -> None:
    assert (
        run_well(python, "-c", "import llmlat_otel.auto; print('ready')", cwd=tmp_path) == "ready\n"
    )


def test_the_command_starts_in_the_new_environment(python: Path, tmp_path: Path) -> None:
    printed = run_well(python.with_name("llmlat"), "--help", cwd=tmp_path)
    commands = ("watch", "show", "profile", "doctor")
    assert [name in printed for name in commands] == [True, True, True, True]
