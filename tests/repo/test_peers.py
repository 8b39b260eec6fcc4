"""`make peers` builds what is pinned, once, and says what it did; nothing half-built is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GO = """#!/bin/sh
# A go that needs no network: `go env GOVERSION`, and `go build ... -o FILE PACKAGE`.
if [ "$1" = env ]; then echo {version}; exit 0; fi
while [ "$1" != -o ]; do shift; done
echo "$3" > "$2"
{then}
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """The pins and the scripts in a tree of their own, so that pins can be changed."""
    folder = tmp_path / "checkout"
    shutil.copytree(root / "tests" / "peers", folder / "tests" / "peers")
    (folder / "examples").mkdir()
    shutil.copytree(root / "examples" / "jaeger", folder / "examples" / "jaeger")
    return folder


def go(folder: Path, version: str = "go1.99.1", then: str = "") -> Path:
    program = folder / f"{version}-{len(then)}"
    program.write_text(GO.format(version=version, then=then), encoding="utf-8")
    program.chmod(0o755)
    return program


def start(checkout: Path, program: Path | None, **variables: str) -> subprocess.Popen[str]:
    script = checkout / "tests" / "peers" / "build.py"
    return subprocess.Popen(
        [sys.executable, str(script), *([f"--go={program}"] if program else [])],
        env={**os.environ, **_variables(checkout), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _variables(checkout: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(checkout / "examples" / "jaeger"),
        "LLMLAT_PEERS": str(checkout / "cache"),
    }


def built(checkout: Path, program: Path | None, **variables: str) -> tuple[int, str, str]:
    process = start(checkout, program, **variables)
    said, errors = process.communicate(timeout=60)
    return process.returncode, said, errors


def kept(checkout: Path) -> list[str]:
    """What is in the cache, apart from the lock."""
    return sorted(each.name for each in (checkout / "cache").iterdir() if each.name != ".lock")


def test_both_are_built_once_and_then_never_again(checkout: Path) -> None:
    program = go(checkout)
    code, said, _ = built(checkout, program)
    assert code == 0
    assert [line.split(":")[1].split()[0] for line in said.splitlines() if "built" in line]
    first = kept(checkout)
    assert [name.split("-")[0] for name in first] == ["collector", "jaeger"]
    assert all(name.endswith("-go1.99.1") for name in first)

    code, said, _ = built(checkout, program)
    assert code == 0
    assert said.count("already there") == 2
    assert kept(checkout) == first


@pytest.mark.parametrize("pin", ["collector/go.sum", "collector/main.go", "jaeger/go.mod"])
def test_another_pin_is_another_build(pin: str, checkout: Path) -> None:
    program = go(checkout)
    built(checkout, program)
    with (checkout / "tests" / "peers" / pin).open("a", encoding="utf-8") as file:
        file.write("\n// another\n")
    code, said, _ = built(checkout, program)
    assert code == 0
    assert said.count("already there") == 1
    assert len(kept(checkout)) == 3


def test_another_go_is_another_build(checkout: Path) -> None:
    built(checkout, go(checkout))
    built(checkout, go(checkout, "go1.99.2"))
    assert len(kept(checkout)) == 4


def test_what_is_built_is_found(checkout: Path) -> None:
    ask = "import backends; print(backends.binary('jaeger').name)"
    environment = {**os.environ, **_variables(checkout)}

    def found() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", ask]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert "run: make peers" in found().stderr
    built(checkout, go(checkout))
    assert found().stdout.strip() in kept(checkout)


def test_a_go_that_is_missing_or_too_old_is_told_with_a_way_out(checkout: Path) -> None:
    code, _, errors = built(checkout, checkout / "nowhere")
    assert code == 1
    assert "there is no" in errors
    assert "https://go.dev/dl/" in errors
    code, _, errors = built(checkout, go(checkout, "go1.9"))
    assert code == 1
    assert "is go1.9, older than Go 1." in errors
    assert "make peers GO=" in errors
    assert not (checkout / "cache").exists()


def test_a_build_that_fails_leaves_nothing(checkout: Path) -> None:
    code, _, errors = built(checkout, go(checkout, then="exit 1"))
    assert code == 1
    assert "could not be built" in errors
    assert kept(checkout) == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_half_built(ending: signal.Signals, checkout: Path) -> None:
    fifo = checkout / "building"
    os.mkfifo(fifo)
    process = start(checkout, go(checkout, then=f"echo > {fifo}; exec sleep 60"))
    fifo.read_text(encoding="utf-8")  # the program has been written, and the build goes on
    assert kept(checkout)
    process.send_signal(ending)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing half-built is left" in errors
    assert kept(checkout) == []


def test_what_a_killed_build_left_is_removed_by_the_next(checkout: Path) -> None:
    left = checkout / "cache" / ".collector-0-go1.partial"
    left.parent.mkdir()
    left.write_text("half", encoding="utf-8")
    built(checkout, go(checkout))
    assert left.name not in kept(checkout)
