"""The demo end to end with a real model under a real llama.cpp server."""

from __future__ import annotations

from pathlib import Path

from tests.integration.demo_run import DemoRun, check_explanation, explained


def test_a_real_engines_request_is_explained(tmp_path: Path) -> None:
    run = DemoRun(tmp_path, ("--json",))
    code, output, errors = run.finish()
    assert code == 0, errors
    check_explanation(explained(output))
    assert run.leftovers() == []
