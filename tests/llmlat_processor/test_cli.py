"""The command line: what is asked of whom, exit codes, and what happens without the extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import IO

import pytest

from llmlat_processor import cli
from llmlat_processor.model.status import Books, Status
from llmlat_processor.timelines.demo import defective_lines, demo_lines
from tests.llmlat_processor.adviser import TRACE_ID, adviser_spans
from tests.llmlat_processor.otlp_lines import otlp_line

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def timelines(tmp_path: Path) -> Path:
    path = tmp_path / "timelines.jsonl"
    path.write_text("\n".join(demo_lines()), encoding="utf-8")
    return path


def test_without_arguments_it_prints_help(capsys: Captured) -> None:
    assert cli.main([]) == 0
    assert "llmlat watch" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["watch", "show", "profile", "config"])
def test_help_of_a_command_has_examples(command: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])

    assert ended.value.code == 0
    assert f"examples:\n  llmlat {command}" in capsys.readouterr().out


def test_a_command_that_another_part_adds_is_listed_with_its_summary(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "doctor    say what is timed" in capsys.readouterr().out


def test_a_command_that_another_part_adds_is_given_the_rest(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = EntryPoint("added", f"{__name__}:ADDED", cli.COMMANDS)
    monkeypatch.setattr(cli, "entry_points", lambda group: [added])
    monkeypatch.setattr(EntryPoint, "load", lambda self: len)
    assert cli.main(["added", "-x", "--", "--help"]) == 3
    with pytest.raises(SystemExit):
        cli.main(["unknown"])
    assert "added" in capsys.readouterr().err


def test_version_is_that_of_the_distribution(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("llmlat 0.")


@pytest.mark.parametrize(
    "wrong",
    [
        ["explain"],
        ["show"],
        ["profile"],
        ["profile", "--demo", "file.jsonl"],
        ["profile", "--demo", "--percentiles", "101"],
        ["profile", "--demo", "--percentiles", "50,"],
        ["watch", "--traces", "0"],
        ["watch", "--traces", "many"],
        ["config"],
        ["config", "check"],
        ["config", "schema", "file.yaml"],
    ],
)
def test_wrong_usage_is_exit_code_2(wrong: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(wrong)

    assert ended.value.code == 2
    assert "usage: llmlat" in capsys.readouterr().err


def test_profile_reports_on_a_file(timelines: Path, capsys: Captured) -> None:
    assert cli.main(["profile", str(timelines)]) == 0

    said = capsys.readouterr()
    assert "265.5      659.5" in said.out
    assert "2,067.5" in said.out
    assert "dominant in TTFT: queue, 151.7 ms mean" in said.out
    assert "dominant in E2E: stream, 1,408.0 ms mean" in said.out
    assert said.err == ""


def test_profile_takes_other_percentiles(timelines: Path, capsys: Captured) -> None:
    assert cli.main(["profile", str(timelines), "--percentiles", "90,50,90", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert list(document["ttft_ms"]) == ["count", "mean", "p90", "p50"]


def test_profile_refuses_a_file_with_a_defect(timelines: Path, capsys: Captured) -> None:
    with timelines.open("a", encoding="utf-8") as lines:
        lines.write("\n" + "\n".join(defective_lines()))

    assert cli.main(["profile", str(timelines)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert (
        f"{timelines}:11: request 'demo-skewed': prefill_end_ms is 5 ms before prefill_start_ms"
        in said.err
    )


def test_profile_refuses_in_json_too(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(defective_lines()), encoding="utf-8")

    assert cli.main(["profile", str(path), "--json"]) == 2
    (refused,) = json.loads(capsys.readouterr().out)["refused"]
    assert (refused["file"], refused["line"]) == (str(path), 1)


@pytest.mark.parametrize("content", ["", "\n  \n"])
def test_profile_refuses_a_file_without_timelines(
    content: str, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content, encoding="utf-8")

    assert cli.main(["profile", str(path)]) == 2
    assert "the file holds no timeline" in capsys.readouterr().err


def test_profile_of_a_file_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["profile", str(tmp_path / "absent")]) == 2
    assert "absent: No such file or directory" in capsys.readouterr().err


def test_profile_demo_shows_the_report_and_the_refusal(capsys: Captured) -> None:
    assert cli.main(["profile", "--demo"]) == 0

    out = capsys.readouterr().out
    assert "dominant in TTFT: queue, 151.7 ms mean of 349.7 (43.4 %)" in out
    assert "request 'demo-skewed': prefill_end_ms is 5 ms before prefill_start_ms" in out


def test_profile_demo_in_json_has_both(capsys: Captured) -> None:
    assert cli.main(["profile", "--demo", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["profile"]["e2e_ms"]["p95"] == 2067.5
    assert [one["request_id"] for one in document["refused"]] == ["demo-skewed"]


def test_show_explains_a_file(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(otlp_line(adviser_spans()), encoding="utf-8")

    assert cli.main(["show", str(path), "--trace", TRACE_ID.hex()[:6].upper(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trace_id"] == TRACE_ID.hex()


def test_show_refuses_an_unknown_phase_and_lists_the_known(capsys: Captured) -> None:
    assert cli.main(["show", "traces.jsonl", "--what-if", "decoding=0.5"]) == 2

    err = capsys.readouterr().err
    assert "'decoding' is no phase; the phases are" in err
    assert "prefill, decode, preempted" in err


def test_show_reads_standard_input() -> None:
    ran = llmlat("show", "-", "--json", stdin=otlp_line(adviser_spans()))

    assert json.loads(ran.stdout)["trace_id"] == TRACE_ID.hex()


WRITING = pytest.mark.parametrize(
    "command", [["show", "-"], ["show", "-", "--json"], ["profile", "--demo"]]
)


@WRITING
def test_a_reader_that_has_left_is_an_exit_code_and_no_words(command: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        ran = writing_to(pipe, command)

    assert (ran.returncode, ran.stderr) == (141, "")


@WRITING
def test_a_full_disk_is_told_in_a_line(command: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = writing_to(full, command)

    assert (ran.returncode, ran.stderr) == (1, f"llmlat {command[0]}: No space left on device\n")


def writing_to(out: IO[bytes], command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llmlat_processor.cli", *command],
        input=otlp_line(adviser_spans()),
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_profile_reads_standard_input() -> None:
    ran = llmlat("profile", "-", stdin="\n".join(demo_lines()))

    assert ran.stdout.startswith("-: 10 requests")


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Host and port of whoever answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(1) as threads:
        threads.submit(server.serve_forever, 0.01)
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_processor_of_this_machine_is_asked_without_a_proxy(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    def answer(one: BaseHTTPRequestHandler) -> None:
        one.send_response(200)
        one.end_headers()
        one.wfile.write(json.dumps(Status(Books()).document()).encode())

    with serving(answer) as endpoint:
        assert cli.main(["processor", "status", "--endpoint", endpoint]) == 0
    assert "the books balance" in capsys.readouterr().out


def test_a_token_is_for_the_place_that_it_was_given_for() -> None:
    shown: list[str | None] = []

    def elsewhere(one: BaseHTTPRequestHandler) -> None:
        shown.append(one.headers["authorization"])
        one.send_error(404)

    def answer(one: BaseHTTPRequestHandler) -> None:
        shown.append(one.headers["authorization"])
        one.send_response(302)
        one.send_header("location", f"http://{other}/status")
        one.end_headers()

    with serving(elsewhere) as other, serving(answer) as endpoint:
        cli.main(["processor", "status", "--endpoint", endpoint, "--token", "s3cret"])
    assert shown == ["Bearer s3cret", None]


def test_help_imports_nothing_that_is_optional() -> None:
    script = (
        "import sys; from llmlat_processor.cli import main; main([]); "
        "print(sorted({'grpc', 'rich', 'orjson', 'google.protobuf', 'pydantic', 'yaml'} "
        "& sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    ("command", "package"),
    [
        (["show", "x"], "rich"),
        (["watch"], "grpc"),
        (["config", "schema"], "pydantic"),
        (["config", "check", "x"], "yaml"),
    ],
)
def test_without_the_extra_it_says_what_to_install(
    command: list[str], package: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for name in [name for name in sys.modules if name.startswith("llmlat_processor.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    assert cli.main(command) == 1
    err = capsys.readouterr().err
    assert f"llmlat {command[0]} needs {package}" in err
    assert "pip install 'llmlat-otel[processor]'" in err


def test_a_module_of_ours_that_is_missing_is_not_blamed_on_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "llmlat_processor.commands.profile", None)

    with pytest.raises(ModuleNotFoundError):
        cli.main(["profile", "--demo"])


def llmlat(*arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llmlat_processor.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
