"""`opentelemetry-instrument`: the real command loads us, and spans go where its distro says."""

import sys

import pytest

from tests.integration.install.collector import BIN, environment, run

PROGRAM = """
import sys
import httpx2, openai
from openai.resources.chat.completions import Completions
import llmlat_otel

assert "llmlat_otel.auto" not in sys.modules, "the distro makes the provider, and not we"
(client,) = [each for each in llmlat_otel.health()["instrumentors"]["httpx"]["targets"]
             if each["target"] == "httpx2.Client.send"]
print(client["state"], llmlat_otel.health()["spans"].get("provider"))
with llmlat_otel.tool("quote"): pass
"""
THEIRS = "opentelemetry.sdk.trace.TracerProvider"
OFF = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
OTHERS = "openai,httpx,httpx2,fastapi"
"""Those of others that are installed here, and take seconds to import."""


def instrumented(collector, **more):
    variables = environment(
        collector.url,
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
        OTEL_TRACES_EXPORTER="otlp_proto_http",
        **{OFF: OTHERS, **more},
    )
    return run([str(BIN / "opentelemetry-instrument"), sys.executable, "-c", PROGRAM], variables)


def test_the_command_instruments_and_spans_go_to_the_provider_of_its_distro(collector):
    done = instrumented(collector)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == f"wrapped {THEIRS}\n"
    assert collector.names == ["execute_tool quote"]


@pytest.mark.parametrize(
    "variable",
    [
        {OFF: f"{OTHERS}, llmlat"},
        {"LLMLAT_DISABLED": "all"},
        {"LLMLAT_DISABLED": "openai, httpx"},
    ],
    ids=str,
)
def test_it_can_be_told_to_leave_libraries_alone(variable, collector):
    done = instrumented(collector, **variable)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == f"off {THEIRS}\n"
