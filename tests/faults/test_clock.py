"""A wall clock that is stepped under load: no trace is lost, or goes too early or too late."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.destinations import timed
from tests.faults.ledger import check_each_came_once, check_each_has_its_lane
from tests.faults.load import batches, ids_of, load
from tests.faults.processor_run import Site, wait_until

pytestmark = pytest.mark.faults

STEP_S = 3600
IDLE = "1s"
ON_TIME_S = 15.0
"""Of which a trace is held for one or two seconds; the rest is for slow machines."""

LIBRARIES = "/usr/lib/*-linux-gnu*/faketime/libfaketimeMT.so.1"


def stepped_by(file: Path) -> Mapping[str, str]:
    """What lets a file tell the time of a process; the monotonic clock is left alone."""
    libraries = sorted(map(str, Path("/").glob(LIBRARIES[1:])))
    assert libraries, "libfaketime is missing: apt-get install faketime"
    return {
        "LD_PRELOAD": libraries[0],
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def tells(environ: Mapping[str, str]) -> float:
    """What a process takes for the time."""
    command = [sys.executable, "-c", "import time; print(time.time())"]
    return float(subprocess.check_output(command, env={**os.environ, **environ}))


@pytest.mark.parametrize("step", ["+1h", "-1h"])
def test_a_step_of_the_wall_clock_changes_nothing(step: str, tmp_path: Path) -> None:
    todo = batches(160, size=60)
    clock = tmp_path / "clock"
    clock.write_text("+0")
    with timed() as destination:
        site = Site(tmp_path, destination.address, window={"idle": IDLE, "grace": IDLE})
        with site.running(stepped_by(clock)) as processor:
            with load(site.grpc, todo, every_s=0.05) as senders:
                wait_until(lambda: len(senders.acknowledged) > len(ids_of(todo)) // 3)
                clock.write_text(step)
                assert abs(tells(stepped_by(clock)) - time.time()) > STEP_S / 2
                wait_until(lambda: len(senders.acknowledged) > 2 * len(ids_of(todo)) // 3)
                clock.write_text("+0")
                senders.join()
            told = processor.wait_until_empty()
            ended = processor.end()

        assert ended.code == 0
        assert not told.books.as_they_came
        assert not told.books.late
        assert 0 < told.uptime_s < STEP_S / 2
        check_each_came_once(ids_of(todo), destination)
        check_each_has_its_lane(ids_of(todo), destination)
        assert max(destination.delays_s(senders.last_s)) < ON_TIME_S
        print(f"{step}: p100 {max(destination.delays_s(senders.last_s)):.2f} s")
