"""The plugin of vLLM: what it times, what it leaves alone, and what it survives."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from llmlat_otel import vllm_plugin

STATES = """
import json, logging
from llmlat_otel.vllm_plugin import register
register()
register()
from llmlat_otel import instrumentation
from llmlat_otel.core import runtime
from llmlat_otel.core.guard import faults
states = {
    each.name: sorted({target.state.value for target in each.targets})
    for each in instrumentation.states()
}
print(json.dumps([states, runtime._make_provider is not None, faults()]))
"""
BROKEN = """
import json, sys
sys.modules["llmlat_otel.{}"] = None
from llmlat_otel.vllm_plugin import register
register()
from llmlat_otel.core.guard import faults
print(json.dumps(faults()))
"""


def told(program, **environment):
    """What a program of its own prints."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "LLMLAT_"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**inherited, "OTEL_TRACES_EXPORTER": "none", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_vllm_finds_it_by_its_group():
    (found,) = entry_points(group="vllm.general_plugins", name="llmlat")
    assert found.value == "llmlat_otel.vllm_plugin:register"
    assert found.load() is vllm_plugin.register


def test_vllm_is_timed_and_nothing_else():
    states, has_provider, faults = told(STATES)
    assert states.pop("vllm") == ["waiting"]
    assert set(map(tuple, states.values())) == {("off",)}
    assert has_provider
    assert faults == {}


@pytest.mark.parametrize(
    ("environment", "has_provider"),
    [
        ({"LLMLAT_DISABLED": "vllm"}, True),
        ({"LLMLAT_DISABLED": "all"}, True),
        ({"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_switched_off_it_times_nothing(environment, has_provider):
    states, is_provided, faults = told(STATES, **environment)
    assert set(map(tuple, states.values())) == {("off",)}
    assert (is_provided, faults) == (has_provider, {})


@pytest.mark.parametrize("module", ["providing", "instrumentation"])
def test_what_it_lacks_is_counted_and_the_server_starts(module):
    assert told(BROKEN.format(module))["vllm plugin"] == 1
