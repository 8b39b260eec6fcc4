"""`llmlat doctor`, the real command: in its own process, over a program, and over health files."""

import json
import sys

import pytest

from tests.integration.install.collector import BIN, environment, run

LLMLAT = str(BIN / "llmlat")
APP = """
import llmlat_otel.auto, llmlat_otel
with llmlat_otel.tool("quote"): print("hello")
"""
STATUSES = {401: "OTEL_EXPORTER_OTLP_HEADERS", 404: "OTEL_EXPORTER_OTLP_PROTOCOL"}


def doctor(*options, **variables):
    return run([LLMLAT, "doctor", *options], environment(**variables))


def untimed(*options, **variables):
    """The same where no library is timed, and so none is imported."""
    return doctor(*options, LLMLAT_DISABLED="all", **variables)


def told(done):
    """The report, which is the last line, and what is wrong in it."""
    report = json.loads(done.stdout.splitlines()[-1])
    findings = [*report["findings"], *report["test_span"]]
    return report, [each["what"] for each in findings if each["is_wrong"]]


def test_it_says_what_is_timed_and_that_a_test_span_was_accepted(collector):
    done = doctor(endpoint=collector.url)
    assert (done.stderr, done.returncode) == ("", 0)
    for said in (
        "✓ openai 3.",
        "✓ httpx2 2.",
        "LLMLAT_PHASES=spans",
        "openai: openinference-instrumentation-openai",
        f"otlp_proto_http at {collector.url}/v1/traces has accepted the test span",
        "all is well",
    ):
        assert said in done.stdout
    assert collector.names == ["execute_tool llmlat-doctor"]


def test_nobody_listens():
    done = untimed("--json", endpoint="http://127.0.0.1:9")
    report, wrong = told(done)
    assert (done.stderr, done.returncode) == ("", 1)
    assert len(wrong) == 1
    assert "Connection refused" in wrong[0]
    assert "nothing listens there" in report["test_span"][0]["advice"]


@pytest.mark.parametrize(("status", "advice"), STATUSES.items())
def test_the_destination_refuses(status, advice, collector):
    collector.status = status
    report, wrong = told(untimed("--json", endpoint=collector.url))
    assert len(wrong) == 1
    assert str(status) in wrong[0]
    assert advice in report["test_span"][0]["advice"]


def test_a_collector_that_rejects_the_span_in_a_partial_success_has_refused_it(collector):
    collector.rejected = 1
    done = untimed("--json", endpoint=collector.url)
    report, wrong = told(done)
    assert done.returncode == 1
    assert len(wrong) == 1
    assert wrong[0].endswith("has refused the test span: too old")
    (destination,) = report["processes"][0]["spans"]["destinations"]
    assert (destination["sent"], destination["rejected"]) == (0, 1)


def test_settings_that_cannot_be_used_are_wrong(collector):
    _, wrong = told(
        doctor("--json", endpoint=collector.url, LLMLAT_PHASES="span", LLMLAT_DISABLED="open_ai")
    )
    assert [each.partition(" ")[0] for each in wrong] == [
        "LLMLAT_PHASES='span'",
        "LLMLAT_DISABLED='open_ai'",
    ]


def test_a_program_is_run_as_it_is_and_its_health_is_told(collector, tmp_path):
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    command = [LLMLAT, "doctor", "--json", "--", sys.executable, "app.py"]
    done = run(command, environment(collector.url), tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("hello\n")
    report, _ = told(done)
    (process,) = report["processes"]
    assert process["has_ended"]
    assert process["spans"]["destinations"][0]["sent"] == 1


def test_a_program_that_does_not_import_us_or_fails_is_told_of():
    done = doctor("--json", "--", sys.executable, "-c", "raise SystemExit(3)")
    _, wrong = told(done)
    assert done.returncode == 1
    assert wrong == [
        "the program has ended with exit code 3",
        "the program has not imported llmlat_otel",
    ]


def test_a_fault_of_ours_is_shown_with_its_count(collector, tmp_path):
    fault = "from llmlat_otel.core.guard import guarded\n"
    fault += "for _ in range(3): guarded('seam', int, 'words of a user')\n"
    (tmp_path / "app.py").write_text(APP + fault, encoding="utf-8")
    command = [LLMLAT, "doctor", "--", sys.executable, "app.py"]
    done = run(command, environment(collector.url), tmp_path)
    assert done.returncode == 1
    assert "a fault of ours, 3 times, in seam: ValueError" in done.stdout
    assert "words of a user" not in done.stdout


def test_an_sdk_that_cannot_be_imported_is_told_of(tmp_path):
    (tmp_path / "wrapt.py").write_text("raise ImportError('no wrapt here')", encoding="utf-8")
    variables = environment(PYTHONPATH=str(tmp_path))
    for command in ([], ["--", sys.executable, "-c", APP]):
        done = run([LLMLAT, "doctor", "--json", *command], variables)
        _, wrong = told(done)
        assert done.returncode == 1
        assert "could not be imported" in wrong[0]
        assert "no wrapt here" in wrong[0]


def test_processes_show_their_health_to_others(collector, tmp_path):
    folder = f"{tmp_path / 'health'}/"
    fork = "import os\nif (child := os.fork()): os.waitpid(child, 0)\n"
    program = [sys.executable, "-c", f"{APP}{fork}"]
    assert run(program, environment(collector.url, LLMLAT_HEALTH=folder)).returncode == 0
    done = doctor("--health", folder, "--json")
    report, wrong = told(done)
    assert (done.returncode, wrong) == (0, [])
    assert len({each["pid"] for each in report["processes"]}) == 2
    assert all(each["has_ended"] for each in report["processes"])


def test_a_running_process_shows_its_health_in_a_file(tmp_path):
    path = tmp_path / "health.json"
    program = (
        APP
        + f"""
import os, time
while not os.path.exists({str(path)!r}): time.sleep(0.01)
import json
print(json.load(open({str(path)!r}))["pid"] == os.getpid())
"""
    )
    variables = environment(LLMLAT_HEALTH=str(path), OTEL_TRACES_EXPORTER="none")
    done = run([sys.executable, "-c", program], variables)
    assert (done.stderr, done.stdout) == ("", "hello\nTrue\n")
    assert json.loads(path.read_text(encoding="utf-8"))["has_ended"]
    assert [each.name for each in tmp_path.iterdir()] == ["health.json"]


def test_a_health_file_that_cannot_be_written_harms_nobody(tmp_path):
    variables = environment(LLMLAT_HEALTH=str(tmp_path / "no" / "such" / "file"))
    done = run([sys.executable, "-c", APP], {**variables, "OTEL_TRACES_EXPORTER": "none"})
    assert (done.stderr, done.stdout, done.returncode) == ("", "hello\n", 0)


@pytest.mark.parametrize("wrong", [["--health"], ["--"], ["--health", "x", "--", "ls"], ["x"]])
def test_wrong_usage_is_exit_code_2(wrong):
    done = doctor(*wrong)
    assert done.returncode == 2
    assert "usage: llmlat doctor" in done.stderr


def test_it_needs_nothing_of_the_processor():
    blocked = "import sys\nfor each in ('rich', 'orjson'): sys.modules[each] = None\n"
    program = blocked + "from llmlat_processor.cli import main\nsys.exit(main(['doctor']))\n"
    done = run(
        [sys.executable, "-c", program],
        environment(OTEL_TRACES_EXPORTER="none", LLMLAT_DISABLED="all"),
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert "spans go nowhere" in done.stdout


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "pigeon"}, "no trace exporter 'pigeon'"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "a fault of ours, once, in provider: ValueError"),
    ],
    ids=["an exporter that is not installed", "a batch processor that cannot be made"],
)
def test_destinations_that_cannot_be_made_are_wrong(variables, said):
    done = untimed(**variables)
    assert (done.stderr, done.returncode) == ("", 1)
    assert said in done.stdout


def test_the_module_is_the_command_too():
    done = run([sys.executable, "-m", "llmlat_otel.doctor", "--help"], environment())
    assert done.returncode == 0
    assert "llmlat doctor -- python app.py" in done.stdout
