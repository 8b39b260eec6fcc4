"""The gate as a command: what it says, and by which exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import check

Plant = Callable[[str, str, str], None]


def test_the_contract_as_it_stands_has_no_problem() -> None:
    assert check.problems(check.SEMCONV) == []
    assert check.main(["--no-weaver"]) == 0


def test_a_message_names_file_name_fault_and_remedy(
    contract: Path, plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("model/phases.yaml", "            end: last request byte written\n", "")

    assert check.main(["--root", str(contract), "--no-weaver"]) == 1
    assert capsys.readouterr().err == (
        "model/phases.yaml: send: a phase without its end edge. "
        "Add `annotations: {end: ...}`, an instant that a program can stamp.\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("attributes: [", "model/engine.yaml", id="no YAML"),
        pytest.param("attributes: []\nattributes: []\n", "twice", id="a key given twice"),
        pytest.param("- a list\n", "not a mapping", id="not a mapping"),
    ],
)
def test_a_contract_that_cannot_be_read_is_another_exit_code(
    contract: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (contract / "model/engine.yaml").write_text(text, encoding="utf-8")

    assert check.main(["--root", str(contract)]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_a_model_cannot_be_read(tmp_path: Path) -> None:
    assert check.main(["--root", str(tmp_path)]) == 2


@pytest.mark.parametrize("status", [0, 1])
def test_weaver_has_a_say_where_it_is_installed(
    contract: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    weaver = tmp_path / "bin" / "weaver"
    weaver.parent.mkdir()
    weaver.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nexit {status}\n')
    weaver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{weaver.parent}:/usr/bin:/bin")

    assert check.main(["--root", str(contract)]) == status
    asked = (tmp_path / "asked").read_text()
    assert asked == f"registry check --registry {contract}/model\n"
