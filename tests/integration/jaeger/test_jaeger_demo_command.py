"""`make demo-jaeger` as people run it: what it prints is true, and its end leaves nothing."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.integration.demo_run import DEMO, PATIENCE_S, DemoRun
from tests.integration.jaeger.storage import Jaeger

PROGRAM = DEMO.with_name("demo_jaeger.py")
UP = "Everything goes on until Ctrl-C."
EMULATED = ("--engine", "emulated")


@contextmanager
def running(run: DemoRun) -> Iterator[subprocess.Popen[str]]:
    """The demo; it stops what it has started however a test ends."""
    with run.start() as process:
        try:
            yield process
        finally:
            process.terminate()


def said_until_up(process: subprocess.Popen[str]) -> str:
    """What it has told when it waits for Ctrl-C."""
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if line.strip() == UP:
            return told
    pytest.fail(f"it ended:\n{told}")


def found_by(search: str) -> set[bytes]:
    """Ids of the traces that a printed search finds."""
    curl = shlex.split(search.partition("|")[0])
    address = urlsplit(curl[2])
    asked = [field.partition("=")[::2] for field in curl[4::2]]
    assert curl[:2] == ["curl", "-sG"]
    assert set(curl[3::2]) == {"--data-urlencode"}
    answer = Jaeger(address.netloc, "").get(f"{address.path}?{urlencode(asked)}")
    return {bytes.fromhex(each["traceID"]) for each in answer["data"]}


@pytest.mark.peers
def test_each_search_that_it_prints_finds_the_trace_and_ctrl_c_stops_everything(
    tmp_path: Path,
) -> None:
    run = DemoRun(tmp_path, EMULATED, program=PROGRAM)
    with running(run) as process:
        told = said_until_up(process)
        (trace_id,) = re.findall(r"has this trace: ([0-9a-f]{32})$", told, re.MULTILINE)
        searches = re.findall(r"^ +(curl .*)$", told, re.MULTILINE)
        found = [found_by(each) for each in searches]
        process.send_signal(signal.SIGINT)
        picture, last = process.communicate(timeout=PATIENCE_S)
    assert len(found) >= 2
    assert all(each == {bytes.fromhex(trace_id)} for each in found)
    assert f"trace {trace_id}\n" in picture
    assert "<html" in run.report.read_text("utf-8")
    assert (process.returncode, last) == (0, "Everything is stopped.\n")
    assert run.leftovers() == []


def test_where_the_peers_are_not_built_it_says_how_they_will_be(tmp_path: Path) -> None:
    folder, empty = tmp_path / "run", tmp_path / "empty"
    for each in (folder, empty):
        each.mkdir()
    run = DemoRun(folder, EMULATED, {"LLMLAT_PEERS": str(empty)}, program=PROGRAM)
    code, output, errors = run.finish()
    assert (code, output) == (1, "")
    assert "is not built yet; run: make peers\n" in errors
    assert "Traceback" not in errors
    assert run.leftovers() == []
