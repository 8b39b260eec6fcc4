"""What users see of openai with us is, byte for byte, what they see without us.

The program is `transcript.py`: ten ways out of each shape of a stream, synchronous and not, calls
that are no streams, and calls that fail. It is run for each of two openais, without us, with us in
two modes, and with a wrapper that is not as careful.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "tests.integration.sdk.transcript"
ROOT = Path(__file__).parents[3]
PATHS = {"openai 3": "", "openai 1": str(Path(sys.prefix) / "peers" / "openai-1")}
MODES = ("none", "spans", "attributes")

ENDS = {
    "full_read": "complete",
    "break_out": "abandoned",
    "early_return": "abandoned",
    "close": "closed_early",
    "leave_the_block": "closed_early",
    "exception_in_the_block": "closed_early",
    "exception_from_the_wire": "failed",
    "interrupted": "failed",
    "cancelled": "cancelled",
    "never_iterated": "abandoned",
    "half_iterated": "abandoned",
}
SHAPES = {
    "openai 3": 7,
    "openai 1": 5,  # It has no responses.
}


def start(version: str, mode: str) -> subprocess.Popen[str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL", "LLMLAT"))
    }
    phases = mode if mode in {"spans", "attributes"} else "off"
    return subprocess.Popen(
        [sys.executable, "-m", PROGRAM, mode],
        cwd=ROOT,
        env={**inherited, "PYTHONPATH": PATHS[version], "LLMLAT_PHASES": phases},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def transcripts() -> dict[tuple[str, str], Any]:
    """What each run has written, by version and mode."""
    runs = [(version, mode) for version in PATHS for mode in MODES] + [("openai 3", "harmful")]
    started = {run: start(*run) for run in runs}
    written = {}
    for run, process in started.items():
        output, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (0, ""), run
        written[run] = json.loads(output)
    return written


def differing(one: Any, other: Any) -> list[str]:
    return [cell for cell in one["seen"] if one["seen"][cell] != other["seen"].get(cell)]


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("version", PATHS)
def test_users_see_what_they_see_without_us(transcripts, version, mode):
    without, within = transcripts[version, "none"], transcripts[version, mode]
    assert differing(without, within) == []
    assert json.dumps(without["seen"]) == json.dumps(within["seen"])


def ways(transcript: Any) -> list[tuple[str, str, Any]]:
    """Shape, way and record of each cell that is a way out of a stream."""
    return [
        (shape, way.removesuffix("_async"), record)
        for cell, record in transcript["recorded"].items()
        for shape, _, way in [cell.rpartition(": ")]
        if way.removesuffix("_async") in ENDS
    ]


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("version", PATHS)
def test_each_way_out_of_each_shape_is_one_ended_span(transcripts, version, mode):
    cells = ways(transcripts[version, mode])
    assert len(cells) == SHAPES[version] * 10 * 2, "ten ways, synchronous and not"
    for shape, way, record in cells:
        spans = [(name, end) for name, end, _ in record["spans"]]
        assert spans == [("chat m", ENDS[way])], (shape, way)
        assert record["open"] == 0, (shape, way)
        assert record["faults"] == {}, (shape, way)


@pytest.mark.parametrize("version", PATHS)
def test_events_are_counted_where_somebody_tells_them_apart(transcripts, version):
    for shape, way, record in ways(transcripts[version, "spans"]):
        (_, _, count), *_ = record["spans"]
        if shape.endswith("lines"):
            assert count is None, (shape, way)
        elif way == "never_iterated":
            assert count == 0, shape
        elif way == "full_read":
            assert count == (9 if "responses" in shape else 6), shape
        else:
            assert count > 0, (shape, way)


@pytest.mark.parametrize("version", PATHS)
def test_no_call_is_left_open_or_fails_us(transcripts, version):
    for cell, record in transcripts[version, "spans"]["recorded"].items():
        assert (record["open"], record["faults"]) == (0, {}), cell


def test_nobody_logs_anything(transcripts):
    for run, transcript in transcripts.items():
        assert transcript["loud"] == [], run


def test_no_connection_is_left_open(transcripts):
    for run, transcript in transcripts.items():
        left = {cell: seen["open"] for cell, seen in transcript["seen"].items() if seen["open"]}
        assert left == {}, run


def test_the_transcript_of_a_harmful_wrapper_differs(transcripts):
    differ = differing(transcripts["openai 3", "none"], transcripts["openai 3", "harmful"])
    assert "sync, create: full_read" in differ, "the class of what is given out"
    assert "sync, create: close" in differ, "what closing does"
    assert "sync, chat helper: leave_the_block" in differ, "what a helper needs"
    assert "sync: methods" in differ, "what the method says of itself"
    assert "async, create: full_read_async" not in differ, "what was left alone"
