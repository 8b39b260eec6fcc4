"""examples/offline.py: however a run ends, it says so, and nothing that it started runs on."""

from __future__ import annotations

import os
import signal

from tests.examples.example_run import finish, start


def test_the_picture_is_shown_below_what_the_example_prints() -> None:
    code, printed, errors = finish(start("one-import"))
    assert (code, errors) == (0, "")
    said, _, picture = printed.partition("\ntrace ")
    assert said.startswith("the account is in good standing")
    assert "The path to the end" in picture
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in printed, "the instructions are left out"


def test_a_server_of_one_s_own_is_asked_and_an_example_that_fails_passes_on_its_code() -> None:
    own = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "none"}
    code, printed, errors = finish(start("one-import", **own))
    assert code == 1
    assert "APIConnectionError" in errors
    assert "chat gpt-4.1-mini" in printed, "what failed is explained, too"


def test_an_interrupt_ends_every_process() -> None:
    process = start("one-import")
    assert process.stdout is not None
    assert process.stdout.read(1), "the example is under way"
    os.killpg(process.pid, signal.SIGINT)
    code, _, _ = finish(process)
    assert code == 130
