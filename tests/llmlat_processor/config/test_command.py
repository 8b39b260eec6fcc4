"""`llmlat config`: what it says of a file, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmlat_processor import cli
from llmlat_processor.commands.config import summary
from tests.llmlat_processor.config.reading import TAP, configured, deployment
from tests.llmlat_processor.config.test_deployment import ALL

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a config file may be, with a home of its own."""
    monkeypatch.setenv("HOME", "/op")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path / "f.yaml"


def test_a_file_that_can_be_used_is_told_in_a_paragraph(file: Path, capsys: Captured) -> None:
    file.write_text(TAP, encoding="utf-8")

    assert cli.main(["config", "check", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out == (
        "tap: receives OTLP over gRPC on 127.0.0.1:4317 (in the clear), up to 64MiB. "
        "Lanes go to backend:4317 over gRPC (in the clear, compression auto, requests up to "
        "4032KiB, a queue of 64MiB, given up after 300s). "
        "A trace goes after 2s of quiet (6s where a callee is missing), no span is held for longer "
        "than 60s, at most 256MiB in all and 50,000 spans of one trace. "
        "Explained is traces with GenAI in them, with a lane. "
        "No journal: the spans are safe elsewhere. "
        "State of clocks in /op/.local/state/llmlat-processor. "
        "Health, metrics (up to 500 series each) and status are told on 127.0.0.1:8889 "
        "(in the clear). 1 worker.\n"
    )
    assert said.err == ""


def test_the_paragraph_tells_all_of_a_file_but_its_secrets() -> None:
    said = summary(configured(ALL).deployment)

    for words in (
        "over gRPC on 0.0.0.0:14317 (mutual TLS, a token)",
        "over HTTP on [::1]:14318 (in the clear, a token)",
        "https://spans.example:443/otlp over HTTP (TLS, a token, headers x-shard, x-tenant",
        "Lanes go to lanes:4317",
        "findings as warnings for Jaeger",
        "Explained is every trace, without a lane",
        "up to 19MiB (durability full) in /var/lib/llmlat",
        "Metrics go every 12s to http://metrics:4318",
        "21 workers",
    ):
        assert words in said
    for secret in ("sesame", "123", "open", "acme", "told."):
        assert secret not in said.replace("opened", "")


def test_where_lanes_go_is_told_where_nobody_says_so() -> None:
    content = "destinations: {spans: {endpoint: a:1}}\ntelemetry: null\njournal: {enabled: off}"
    said = summary(deployment(content))

    assert "Spans go to a:1" in said
    assert "Lanes go with them." in said
    assert "status are told nowhere." in said
    assert "No journal: what is held is lost with the process." in said


def test_problems_are_told_line_by_line(file: Path, capsys: Captured) -> None:
    file.write_text("mode: tab\nworkers: 0", encoding="utf-8")

    assert cli.main(["config", "check", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"{file}:1: mode: 'tab' is none of inline, tap\n"
        f"{file}:2: workers: '0' is not a whole number of at least 1\n"
    )


def test_json_has_problems_or_a_summary_with_warnings(file: Path, capsys: Captured) -> None:
    file.write_text("mode: tab", encoding="utf-8")
    assert cli.main(["config", "check", str(file), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "file": str(file),
        "ok": False,
        "problems": [{"line": 1, "key": "mode", "problem": "'tab' is none of inline, tap"}],
    }

    file.write_text("destinations: {spans: {endpoint: a:1, token: t}}", encoding="utf-8")
    assert cli.main(["config", "check", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [warning["key"] for warning in document["warnings"]] == ["destinations.spans.token"]
    assert document["summary"].startswith("inline: receives OTLP")


def test_a_warning_is_told_beside_the_paragraph(file: Path, capsys: Captured) -> None:
    file.write_text("destinations: {spans: {endpoint: a:1, token: t}}", encoding="utf-8")

    assert cli.main(["config", "check", str(file)]) == 0
    said = capsys.readouterr()
    assert said.err == (
        f"{file}:1: destinations.spans.token: goes to a in the clear; write https://, or give it "
        "tls (a warning)\n"
    )
    assert said.out.startswith("inline: ")


def test_a_file_that_is_not_there_or_is_a_folder_is_told(file: Path, capsys: Captured) -> None:
    assert cli.main(["config", "check", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"{file}: No such file or directory; name a config file that can be read\n"
    )
    assert cli.main(["config", "check", str(file.parent)]) == 1
    assert "Is a directory" in capsys.readouterr().err


def test_files_of_tls_are_looked_at(file: Path, capsys: Captured) -> None:
    (file.parent / "cert").touch()
    content = "destinations: {spans: {endpoint: a:1, tls: {cert_file: %s/cert, key_file: %s/key}}}"
    file.write_text(content.replace("%s", str(file.parent)), encoding="utf-8")

    assert cli.main(["config", "check", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"{file}:1: destinations.spans.tls.key_file: {file.parent}/key: No such file or directory; "
        "name a file in PEM that can be read\n"
    )


def test_the_schema_is_printed_for_editors(capsys: Captured) -> None:
    assert cli.main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["mode"]["default"] == "inline"
