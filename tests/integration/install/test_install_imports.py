"""What we need may be missing, too old or broken: the application runs as it did without us."""

import json

import pytest

from tests.integration.install.collector import environment, run_python

APPLICATION = """
import asyncio, json
import llmlat_otel.auto
import llmlat_otel
from llmlat_otel import agent, first_content, phase, retrieval, tool

@tool()
def weather(city): return city.upper()

@agent("a")
async def ask(): return 1

async def main():
    async with retrieval("r") as span: span.set_attribute("k", "v")
    assert await ask() == 1
    assert await llmlat_otel.flush_async() in (True, False)
    assert await llmlat_otel.shutdown_async() in (True, False)

with agent("a") as span, phase("tool"):
    span.set_attribute("k", "v")
    first_content()
    assert weather("x") == "X"
asyncio.run(main())
llmlat_otel.instrument()
llmlat_otel.uninstrument()
print(json.dumps(llmlat_otel.health()))
print(llmlat_otel.flush(), llmlat_otel.shutdown())
"""
BLOCKED = "import sys\nsys.modules[{0!r}] = None\n"
LOADED = {
    "an exporter package that fails as it is imported": BLOCKED.format(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    ),
    "no SDK of OpenTelemetry": BLOCKED.format("opentelemetry.sdk.trace"),
    "wrapt cannot wait for imports": "import wrapt\ndel wrapt.register_post_import_hook\n",
    "metadata that cannot be read": (
        "import importlib.metadata as m\ndef fail(**_): raise RuntimeError\nm.entry_points = fail\n"
    ),
}
NOT_LOADED = {
    "no wrapt": BLOCKED.format("wrapt"),
    "a wrapt without the class of our proxies": "import wrapt\ndel wrapt.BaseObjectProxy\n",
    "no API of OpenTelemetry": BLOCKED.format("opentelemetry"),
    "no contract": BLOCKED.format("llmlat_semconv"),
    "a contract without a name that we use": (
        "import llmlat_semconv.attributes as a\ndel a.LLMLAT_PHASE_NAME\n"
    ),
    "a contract of another major version": (
        "import llmlat_semconv.version as v\nv.CONTRACT_VERSION = '9.0.0'\n"
    ),
}


def told(fault):
    """The health that the application tells, after a fault."""
    done = run_python(fault + APPLICATION, environment("http://127.0.0.1:9"), "-W", "error")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout.splitlines()[0])


@pytest.mark.parametrize("fault", LOADED.values(), ids=LOADED)
def test_without_a_part_the_rest_works_and_the_fault_is_counted(fault):
    health = told(fault)
    assert health["is_loaded"]
    assert health["faults"]


@pytest.mark.parametrize("fault", NOT_LOADED.values(), ids=NOT_LOADED)
def test_where_nothing_can_work_there_are_stand_ins_and_the_fault_is_counted(fault):
    health = told(fault)
    assert not health["is_loaded"]
    assert health["faults"]["import"]["count"] == 1
    assert health["faults"]["import"]["first"]


def test_an_environment_that_cannot_be_read():
    broken = """
import os
class Unreadable(dict):
    def get(self, name, default=None):
        if name.startswith(("OTEL_", "LLMLAT_")): raise OSError("no")
        return super().get(name, default)
os.environ = Unreadable(os.environ)
"""
    assert told(broken)["faults"]
