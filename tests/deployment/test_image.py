"""The image is made of the files that it copies, runs as nobody, and knows whether it is well."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment.files import ROOT, SHIPPED, program
from tests.deployment.stub_server import answering
from tests.repo.programs import Plant, run, run_well

DOCKERFILE = SHIPPED / "Dockerfile"
TEXT = DOCKERFILE.read_text(encoding="utf-8")
COMMANDS = TEXT.replace("\\\n", " ").splitlines()


def of(instruction: str) -> Iterator[str]:
    """What follows an instruction, each time that it is there."""
    for line in COMMANDS:
        word, _, rest = line.strip().partition(" ")
        if word == instruction:
            yield rest


def copied() -> list[str]:
    """What is copied from the context."""
    return [name for line in of("COPY") if "--from" not in line for name in line.split()[:-1]]


def test_hadolint_has_nothing_to_say() -> None:
    assert run_well(program("hadolint"), "--failure-threshold", "style", DOCKERFILE, cwd=ROOT) == ""


def test_hadolint_finds_a_planted_fault(plant: Plant, tmp_path: Path) -> None:
    file = plant("Dockerfile", "FROM python:latest\nUSER root\n")
    assert "DL3007" in run(program("hadolint"), file, cwd=tmp_path).stdout


def test_what_is_copied_is_let_through_and_nothing_else_is() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    assert ignore[1] == "*"
    let_through = {line[1:] for line in ignore if line.startswith("!")}
    assert let_through == set(copied())


def test_the_wheel_is_made_of_what_is_copied(tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    for name in copied():
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, context / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, context / name)
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path)
    run_well(*build, cwd=context)
    assert [file.name for file in tmp_path.glob("*.whl")] == ["llmlat_otel-0.1.0-py3-none-any.whl"]


def test_uv_is_the_one_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pinned,) = re.findall(r"^UV_VERSION := (\S+)$", makefile, re.MULTILINE)
    assert f"uv=={pinned}" in TEXT


def test_it_runs_as_a_number_that_is_not_root() -> None:
    (user,) = of("USER")
    assert re.fullmatch(r"([1-9]\d+):\1", user)
    assert f"install -d -o {user.replace(':', ' -g ')}" in " ".join(of("RUN"))


def test_what_it_writes_lies_in_a_volume() -> None:
    (volume,) = of("VOLUME")
    assert f"PROCESSOR_STATE={volume}" in " ".join(of("ENV"))


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (503, False)])
def test_the_health_check_asks_the_processor(status: int, is_well: bool) -> None:
    (check,) = of("HEALTHCHECK")
    command = json.loads(check[check.index("CMD") + len("CMD") :])
    with answering(status) as (address, asked):
        python = [
            sys.executable,
            *(word.replace("127.0.0.1:8889", address) for word in command[1:]),
        ]
        ended = run(*python, cwd=ROOT, more={"http_proxy": "http://127.0.0.1:9"})
    assert (ended.returncode == 0) is is_well
    assert asked == ["/healthz"]
