"""The command where it cannot run: what it says, and that it makes nothing."""

from __future__ import annotations

import json

import pytest

from tests.truth import __main__ as command
from tests.truth import network
from tests.truth.scenarios import SCENARIOS, Clock


def test_without_root_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert command.main([]) == command.CANNOT
    assert "needs root" in capsys.readouterr().err


def test_without_its_programs_it_names_debians_packages(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None if name != "unshare" else name)
    assert command.main([]) == command.CANNOT
    assert "apt-get install iproute2 faketime" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "no scenario 'nonsense'"),
        (["--write", "no/such/page.md"], "no file no/such/page.md"),
        (["--nonsense"], "unrecognized arguments"),
    ],
    ids=["no scenario", "no page", "no option"],
)
def test_wrong_usage_is_told_before_anything_runs(arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == command.CANNOT
    assert says in capsys.readouterr().err


def test_help_names_each_scenario(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    said = capsys.readouterr().out
    for scenario in SCENARIOS:
        assert scenario.says in said


def test_a_kernel_that_refuses_is_named(monkeypatch, capsys):
    def refuse(*_arguments):
        raise network.RigError("this machine allows no namespaces: `ip netns add`: no")

    monkeypatch.setattr(command, "obstacle", lambda: None)
    monkeypatch.setattr(command, "hosts", refuse)
    monkeypatch.setattr("os.nice", lambda _by: 0)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert command.main(["quick"]) == command.CANNOT
    assert "allows no namespaces" in capsys.readouterr().err


def test_a_program_runs_in_its_namespace_with_clocks_of_its_own():
    host = network.Host("app", "ns-app", "198.18.77.2", "198.18.77.1")
    assert host.command(["python", "-V"], Clock(5_000), {"FAKETIME": "+5s x1.0001"}) == [
        *("ip", "netns", "exec", "ns-app"),
        *("unshare", "--time", "--monotonic", "5000", "--boottime", "5000", "--"),
        *("env", "FAKETIME=+5s x1.0001", "python", "-V"),
    ]


def test_json_is_one_document_and_a_wrong_outcome_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(command, "_outcomes", lambda chosen: iter(()))
    monkeypatch.setattr(command, "_versions", lambda: {"python": "3"})
    assert command._run([], as_document=True, page=None) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["versions"] == {"python": "3"}
    assert said["goals"][0].startswith("goal delay_error_of_its_limit")
