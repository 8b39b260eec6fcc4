"""Each seam of the SDK is made to fail under several programs, which are none the wiser."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.seams.handovers import HANDOVERS, LEFTOVERS

ROOT = Path(__file__).parents[3]
PACKAGE = "tests.integration.seams"
PROCESSES = (("sweep", "--part=0/2"), ("sweep", "--part=1/2"), ("outside",))


def report_of(arguments):
    """What a process of its own reports: the SDK in it is another one."""
    module, *options = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"{PACKAGE}.{module}", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def reports():
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(PROCESSES, pool.map(report_of, PROCESSES), strict=True))


@pytest.fixture(scope="module")
def sweeps(reports):
    return [report for (module, *_), report in reports.items() if module == "sweep"]


def told(troubles):
    return [f"{each['site']} | {each['run']} {each['nth']} | {each['what']}" for each in troubles]


def test_no_fault_of_a_seam_is_noticed_or_left_uncounted(sweeps):
    assert [line for report in sweeps for line in told(report["troubles"])] == []


def test_no_fault_around_the_sdk_is_noticed_or_left_uncounted(reports):
    assert told(reports["outside",]["troubles"]) == []


def test_the_programs_reach_every_module_that_runs_beside_an_application(sweeps):
    assert [report["unreached"] for report in sweeps] == [[], []]


def test_each_exception_is_needed(sweeps):
    needed = {each for report in sweeps for each in report["needed"]}
    assert needed == {*HANDOVERS, *LEFTOVERS}
