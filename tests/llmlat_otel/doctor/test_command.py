"""The doctor's command line, as far as it needs no process of its own."""

import json

import pytest

from llmlat_otel.doctor import main
from llmlat_otel.doctor.command import _split

REPORT = {
    "pid": 7,
    "version": "0.1.0",
    "is_loaded": True,
    "spans": {"made": 1},
    "faults": {},
    "settings": {"in_force": {"LLMLAT_PHASES": "spans"}, "refused": []},
}


@pytest.fixture
def folder(tmp_path):
    for pid in (7, 8):
        report = {**REPORT, "pid": pid, "has_ended": pid == 8}
        (tmp_path / f"llmlat-{pid}.json").write_text(json.dumps(report), encoding="utf-8")
    return tmp_path


def told(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("said", "split"),
    [
        (["--json"], (["--json"], None)),
        (["--json", "--", "a", "--", "b"], (["--json"], ["a", "--", "b"])),
        (["--"], ([], [])),
    ],
)
def test_what_comes_after_the_dashes_is_the_program(said, split):
    assert _split(said) == split


def test_every_process_of_a_folder_is_told_of(folder, capsys):
    assert main(["--health", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "process 7" in printed
    assert "process 8" in printed
    assert printed.endswith("all is well\n")


def test_a_finding_names_its_process_where_there_are_several(folder, capsys):
    wrong = {**REPORT, "faults": {"t": {"count": 1, "first": "TypeError"}}}
    (folder / "llmlat-7.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert main(["--health", str(folder), "--json"]) == 1
    (finding,) = told(capsys)["findings"]
    assert finding["what"] == "process 7: a fault of ours, once, in t: TypeError"


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"faults": 7}'], ids=str)
def test_a_file_that_cannot_be_read_is_wrong(content, tmp_path, capsys):
    path = tmp_path / "health.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert main(["--health", str(path), "--json"]) == 1
    (finding,) = told(capsys)["findings"]
    assert f"{path} cannot be read" in finding["what"]


def test_a_folder_without_any_process_is_wrong(tmp_path, capsys):
    assert main(["--health", str(tmp_path), "--json"]) == 1
    assert "holds no health" in told(capsys)["findings"][0]["what"]


def test_a_program_that_cannot_be_run(tmp_path, capsys):
    assert main(["--json", "--", str(tmp_path / "none")]) == 1
    assert "cannot be run: No such file" in told(capsys)["findings"][0]["what"]
