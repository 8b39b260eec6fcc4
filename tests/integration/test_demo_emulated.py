"""The demo end to end with the emulated engine: its explanation, its ends, and nothing left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.demo_run import PATIENCE_S, DemoRun, check_explanation, explained

EMULATED = ("--engine", "emulated")


def test_the_trace_is_explained_as_json(tmp_path: Path) -> None:
    run = DemoRun(tmp_path, (*EMULATED, "--json"))
    code, output, errors = run.finish()
    assert code == 0, errors
    check_explanation(explained(output))
    assert run.leftovers() == []


def test_the_picture_ends_with_what_dominated(tmp_path: Path) -> None:
    run = DemoRun(tmp_path, EMULATED, {"COLUMNS": "100"})
    code, output, errors = run.finish()
    assert code == 0, errors
    end, content, page = output.splitlines()[-3:]
    assert end.startswith("To the end: ")
    assert content.startswith("To the first useful content: ")
    assert page.endswith(str(run.report))
    assert "<html" in run.report.read_text("utf-8")
    assert "\x1b" not in output + errors
    assert run.leftovers() == []


@pytest.mark.parametrize(
    ("interrupt", "moment"),
    [(signal.SIGINT, "starting the model server"), (signal.SIGTERM, "retrieving the policy")],
)
def test_an_interrupt_stops_every_process(
    tmp_path: Path, interrupt: signal.Signals, moment: str
) -> None:
    run = DemoRun(tmp_path, EMULATED)
    process = run.start()
    assert process.stderr is not None
    assert any(moment in line for line in process.stderr)
    process.send_signal(interrupt)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "everything is stopped" in errors
    assert run.leftovers() == []


def test_a_server_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    folder, broken = tmp_path / "run", tmp_path / "broken"
    for each in (folder, broken):
        each.mkdir()
    (broken / "starlette.py").write_text("raise SystemExit('no web today')")
    run = DemoRun(folder, EMULATED, {"PYTHONPATH": str(broken)})
    code, output, errors = run.finish()
    assert code == 1
    assert output == ""
    assert "error: model-server ended with status 1" in errors
    assert "no web today" in errors
    assert "Traceback" not in errors
    assert run.leftovers() == []


def test_an_unknown_engine_is_wrong_usage(tmp_path: Path) -> None:
    code, _, errors = DemoRun(tmp_path, ("--engine", "steam")).finish()
    assert code == 2
    assert "invalid choice: 'steam'" in errors
