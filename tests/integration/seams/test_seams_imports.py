"""Libraries that the SDK needs, in a shape that it cannot use: the application runs as ever."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest
import wrapt

import llmlat_semconv

PLAIN = """
import contextlib
class Inert(contextlib.ContextDecorator):
    def __enter__(self): return self
    def __exit__(self, *_): pass
    async def __aenter__(self): return self
    async def __aexit__(self, *_): pass
    def set_attribute(self, *_): pass
agent = tool = retrieval = phase = lambda *_, **__: Inert()
first_content = instrument = uninstrument = lambda: None
"""
SDK = """
import llmlat_otel.auto
from llmlat_otel import agent, first_content, instrument, phase, retrieval, tool, uninstrument
"""
PROGRAM = """
import asyncio
import httpx2

@tool("add")
def add(one, two=2):
    return one + two

@agent()
async def answer(text):
    async with phase("prepare"):
        first_content()
        return text + str(add(1))

def reply(request):
    return httpx2.Response(200, json={"path": request.url.path})

async def main():
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(reply)) as client:
        print((await client.get("http://a/b")).json(), await answer("a"))

instrument()
with agent("adviser") as span, retrieval("index"):
    span.set_attribute("k", 1)
    with httpx2.Client(transport=httpx2.MockTransport(reply)) as client:
        print(client.get("http://a/b").json(), add(3), add.__name__)
asyncio.run(main())
uninstrument()
try:
    with tool("failing"):
        raise KeyError("theirs")
except KeyError as error:
    print(repr(error), error.__context__)
"""
PID = """
import os, sys
print(os.getpid(), file=sys.stderr)
"""

SEMCONV = Path(llmlat_semconv.__file__).parent
WRAPT = Path(wrapt.__file__).parent

MISFITS = {
    "the contract lacks a name": (SEMCONV, "attributes.py", "\ndel LLMLAT_PHASE_NAME\n"),
    "the contract lacks a name that is looked up late": (
        SEMCONV,
        "attributes.py",
        "\ndel LLMLAT_CLOCK_MONOTONIC_START\n",
    ),
    "the contract lacks a function": (SEMCONV, "phases.py", "\ndel duration_attribute\n"),
    "the contract is of another major": (SEMCONV, "version.py", '\nCONTRACT_VERSION = "9.0.0"\n'),
    "the contract cannot be imported": (SEMCONV, "spans.py", "\nraise ImportError(__name__)\n"),
    "the contract is broken": (SEMCONV, "values.py", "\nthis is not Python\n"),
    "wrapt has no hooks": (WRAPT, "__init__.py", "\ndel register_post_import_hook\n"),
    "wrapt is 1.x": (WRAPT, "__init__.py", "\ndel BaseObjectProxy\n"),
    "wrapt has no generic wrappers": (
        WRAPT,
        "__init__.py",
        "\nclass FunctionWrapper: ...\nclass BoundFunctionWrapper: ...\n",
    ),
    "there is no wrapt": (WRAPT, "__init__.py", "\nraise ModuleNotFoundError(__name__)\n"),
}


def run(command, **variables):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        command,
        env={**inherited, "OTEL_TRACES_EXPORTER": "none", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run_program(program, health, first_path=""):
    """Run a program that writes how it goes into a folder; warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", program + PID]
    return run(command, PYTHONPATH=str(first_path), LLMLAT_HEALTH=f"{health}/")


def run_misfit(place, folder, health):
    """Run the program with a misfit before all others on its path."""
    package, module, more = place
    shutil.copytree(package, folder / package.name)
    with (folder / package.name / module).open("a") as source:
        source.write(more)
    return run_program(SDK + PROGRAM, health, folder)


@pytest.fixture(scope="module")
def health(tmp_path_factory):
    return tmp_path_factory.mktemp("health")


@pytest.fixture(scope="module")
def done(tmp_path_factory, health):
    """What came of each program; the one without the SDK is `plain`."""
    folders = [tmp_path_factory.mktemp("misfit") for _ in MISFITS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plain = pool.submit(run_program, PLAIN + PROGRAM, health)
        working = pool.submit(run_program, SDK + PROGRAM, health)
        misfits = pool.map(run_misfit, MISFITS.values(), folders, repeat(health))
        every = dict(zip(MISFITS, misfits, strict=True))
        return {"plain": plain.result(), "working": working.result(), **every}


@pytest.fixture(scope="module")
def doctor(done, health):
    """What `llmlat doctor` says of each process."""
    llmlat = Path(sys.executable).with_name("llmlat")
    told = run([str(llmlat), "doctor", "--json", "--health", str(health)])
    return {each["pid"]: each for each in json.loads(told.stdout.splitlines()[-1])["processes"]}


@pytest.fixture
def of(done, doctor):
    """A program, and what the doctor says of it."""
    return lambda name: (done[name], doctor[int(done[name].stderr)])


def test_the_program_says_the_same_with_the_sdk_as_it_should_be(done, of):
    program, health = of("working")
    assert program.stdout == done["plain"].stdout != ""
    assert (health["is_loaded"], health["faults"]) == (True, {})


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_the_sdk_cannot_use_costs_telemetry_and_nothing_else(misfit, done, of):
    program, health = of(misfit)
    assert program.stdout == done["plain"].stdout
    assert program.returncode == 0
    assert sum(each["count"] for each in health["faults"].values()) >= 1
