"""`import llmlat_otel.auto` in programs of their own: import orders, providers, dead exporters."""

import os
import subprocess
import sys

import pytest

from llmlat_semconv import attributes as names

AUTO, OPENAI = "import llmlat_otel.auto\n", "import openai\n"
CALL = """
client = openai.OpenAI(base_url={url!r}, api_key="k")
assert client.chat.completions.create(model="m", messages=[]).choices[0].message.content == "ab"
assert len(list(client.chat.completions.create(model="m", messages=[], stream=True))) == 6
"""
TOOL = 'with llmlat_otel.tool("quote"): pass\n'
PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
REPORT = """
print([span.name for span in exporter.get_finished_spans() if not span.name.startswith("phase")])
"""


def run(program, url="", **environment):
    """Run a program with no `OTEL_*` variables but these; warnings are errors."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program.format(url=url)],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "order", [AUTO + OPENAI + PROVIDER, PROVIDER + OPENAI + AUTO], ids=["first", "last"]
)
def test_auto_may_be_imported_first_or_last(order, server):
    done = run(order + CALL + REPORT, server.url)
    assert done.stderr == ""
    assert done.stdout == "['chat m', 'chat m']\n"
    assert all("traceparent" in headers for headers, _ in server.requests)


def test_a_provider_that_is_set_after_the_first_span_gets_the_later_ones():
    done = run(AUTO + TOOL + PROVIDER + TOOL + REPORT, OTEL_TRACES_EXPORTER="console")
    assert done.stderr == ""
    assert done.stdout.count("execute_tool quote") == 2, "one each: to the console, to the provider"
    assert "['execute_tool quote']" in done.stdout


def test_without_a_provider_the_environment_says_where_spans_go():
    program = AUTO + TOOL + "from opentelemetry import trace\nprint(trace.get_tracer_provider())\n"
    done = run(program, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="adviser")
    assert done.stderr == ""
    assert done.stdout.count('"name": "execute_tool quote"') == 1
    resource = done.stdout[done.stdout.index('"resource"') :]
    assert '"service.name": "adviser"' in resource
    for name in (
        names.LLMLAT_CLOCK_DOMAIN_ID,
        names.SERVICE_INSTANCE_ID,
        names.PROCESS_PID,
    ):
        assert done.stdout.count(f'"{name}"') == resource.count(f'"{name}"') == 1
    assert "ProxyTracerProvider" in done.stdout, "the global one is still the application's to set"


@pytest.mark.parametrize(
    ("environment", "imported"),
    [({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "True"), ({}, "False")],
    ids=["the environment says where spans go", "the application may yet say it"],
)
def test_the_exporter_is_imported_with_us_and_not_in_an_event_loop(environment, imported):
    program = AUTO + "import sys\nprint('opentelemetry.exporter.otlp.proto.grpc' in sys.modules)\n"
    done = run(program, **environment)
    assert (done.stderr, done.stdout) == ("", f"{imported}\n")


def test_a_stream_that_is_never_dropped_is_exported_at_exit(server):
    program = AUTO + OPENAI + CALL + 'stream = client.chat.completions.create(model="m", '
    program += "messages=[], stream=True)\nnext(stream)\n"
    done = run(program, server.url, OTEL_TRACES_EXPORTER="console")
    assert done.stderr == ""
    assert done.stdout.count('"name": "chat m"') == 3
    assert f'"{names.LLMLAT_STREAM_END}": "abandoned"' in done.stdout


@pytest.mark.parametrize(
    "environment", [{"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}]
)
def test_nothing_is_exported_where_nothing_is_wanted(environment):
    done = run(AUTO + TOOL, **environment)
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_dead_collector_never_reaches_the_program(protocol):
    done = run(
        AUTO + TOOL + "print('done')",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert "Traceback" not in done.stderr


def test_an_unknown_exporter_is_warned_of():
    done = run(AUTO + TOOL, OTEL_TRACES_EXPORTER="pigeon")
    assert "pigeon" in done.stderr
    assert done.returncode == 0


def test_a_forked_child_has_a_provider_of_its_own():
    fork = "import os\nif (child := os.fork()) == 0:\n    "
    program = AUTO + TOOL + fork + TOOL + "else:\n    assert os.waitpid(child, 0)[1] == 0\n"
    done = run(program, OTEL_TRACES_EXPORTER="console")
    assert done.returncode == 0
    pids = {line.strip() for line in done.stdout.splitlines() if f'"{names.PROCESS_PID}"' in line}
    assert len(pids) == 2
