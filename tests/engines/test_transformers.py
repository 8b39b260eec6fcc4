"""`generate` of a real model: the same tokens with us as without, and phases that are true."""

from __future__ import annotations

import json
import subprocess
from typing import Any, NamedTuple

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import StreamEnd
from tests.engines import parts
from tests.engines.installed import python_path
from tests.engines.vllm_server import variables

pytestmark = pytest.mark.engines

PROGRAM = parts.HERE / "generating.py"
ENGINE = "engine text_completion"
PAD = 511
PATIENCE_S = 600
STOPPED = ("streamer raises", "criterion raises", "interrupted")
FAILED = ("failing", "refused")
WAYS = (
    *("plain", "one", "sampled", "watched", "streamer", "streamed", "batch", "returned"),
    *("criterion", "beams", "drafted", "looked up", "prefix", "chunks", "static", "no cache"),
    *("compiled", "side by side"),
)
UNTIMED = ("compiled whole",)
HOOKS = ("_begun", "_enter", "_prompt", "_asked", "_answered", "_stopped", "_went_round")
BROKEN = tuple(f"broken {hook}" for hook in HOOKS)


class Interval(NamedTuple):
    """A phase on the monotonic clock."""

    start_ns: int
    end_ns: int
    is_cut: bool


class Run(NamedTuple):
    """What the program says of one way to generate."""

    told: dict[str, Any]

    @property
    def engines(self) -> list[dict[str, Any]]:
        """The engine operations."""
        return [each for each in self.told["spans"] if each["name"] == ENGINE]

    @property
    def said(self) -> dict[str, Any]:
        """What the only engine operation says."""
        (engine,) = self.engines
        attributes: dict[str, Any] = engine["attributes"]
        return attributes

    def phases(self) -> dict[str, Interval]:
        """The phases of the only engine operation."""
        (engine,) = self.engines
        children = [each for each in self.told["spans"] if each["parent"] == engine["id"]]
        return {
            each[names.LLMLAT_PHASE_NAME]: _interval(each)
            for each in (child["attributes"] for child in children)
        }

    def seen(self, what: str) -> list[int]:
        """When a caller's own hooks saw something."""
        return [at_ns for kind, at_ns in self.told["seen"] if kind == what]


def _interval(said: dict[str, Any]) -> Interval:
    start_ns = said[names.LLMLAT_CLOCK_MONOTONIC_START]
    length_ns = round(said[names.LLMLAT_PHASE_DURATION] * 1e9)
    return Interval(start_ns, start_ns + length_ns, names.LLMLAT_PHASE_TRUNCATED in said)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    command = [str(parts.vllm_python()), str(PROGRAM), str(parts.model())]
    ours = python_path(tmp_path_factory.mktemp("installed"))
    done = subprocess.run(
        command,
        env=variables(PYTHONPATH=ours),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return {name: Run(told) for name, told in json.loads(done.stdout.splitlines()[-1]).items()}


def test_all_ways_were_tried(runs: dict[str, Run]) -> None:
    assert set(runs) == {*WAYS, *STOPPED, *FAILED, *BROKEN, *UNTIMED}


@pytest.mark.parametrize("way", [*WAYS, *STOPPED, *FAILED, *BROKEN, *UNTIMED])
def test_the_same_comes_of_it_with_us_as_without(runs: dict[str, Run], way: str) -> None:
    told = runs[way].told
    assert told["timed"] == told["plain"]
    assert told["left"] == [0, 0], "hooks on the model"
    assert bool(told["faults"]) is (way in BROKEN)


@pytest.mark.parametrize(
    ("ways", "end"),
    [
        (WAYS, StreamEnd.COMPLETE),
        (STOPPED, StreamEnd.CANCELLED),
        (FAILED, StreamEnd.FAILED),
    ],
)
def test_each_is_an_operation_that_says_how_it_ended(
    runs: dict[str, Run], ways: tuple[str, ...], end: StreamEnd
) -> None:
    ends = {
        way: {each["attributes"][names.LLMLAT_STREAM_END] for each in runs[way].engines}
        for way in ways
    }
    assert ends == {way: {end.value} for way in ways}
    counts = {way: len(runs[way].engines) for way in ways}
    assert counts == {way: 2 if way == "side by side" else 1 for way in ways}


def test_what_is_compiled_with_our_code_in_it_is_left_alone(runs: dict[str, Run]) -> None:
    assert runs["compiled whole"].told["spans"] == []


@pytest.mark.parametrize(
    ("way", "computed", "cached", "rows", "tokens", "steps"),
    [
        ("plain", 300, 0, 1, 7, 7),
        ("one", 300, 0, 1, 0, 0),
        ("sampled", 300, 0, 1, 7, 7),
        ("streamer", 300, 0, 1, 7, 7),
        ("streamed", 300, 0, 1, 7, 7),
        ("returned", 900, 0, 3, 21, 7),
        ("criterion", 300, 0, 1, 2, 2),
        ("criterion raises", 300, 0, 1, 2, 2),
        ("interrupted", 300, 0, 1, 2, 2),
        ("streamer raises", 300, 0, 1, 3, 3),
        ("beams", 900, 0, 3, None, 7),
        ("prefix", 100, 200, 1, 7, 7),
        ("chunks", 300, 0, 1, 7, 7),
        ("static", 300, 0, 1, 7, 7),
        ("no cache", 300, 0, 1, 7, 7),
        ("compiled", 300, 0, 1, 3, 3),
    ],
)
def test_tokens_and_steps_are_counted(
    runs: dict[str, Run],
    way: str,
    computed: int,
    cached: int,
    rows: int,
    tokens: int | None,
    steps: int,
) -> None:
    said = runs[way].said
    assert said[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == computed
    assert said[names.LLMLAT_PREFILL_CACHED_TOKENS] == cached
    assert said[names.LLMLAT_BATCH_SIZE_MAX] == rows
    assert said.get(names.LLMLAT_DECODE_TOKENS) == tokens
    assert said[names.LLMLAT_DECODE_STEPS] == steps


def test_the_rows_of_a_batch_are_counted_until_each_was_done(runs: dict[str, Run]) -> None:
    run = runs["batch"]
    lengths = [sum(token != PAD for token in row) for row in run.told["timed"]]
    assert len(set(lengths)) > 1, "they end apart"
    assert run.said[names.LLMLAT_DECODE_TOKENS] == sum(lengths) - len(lengths)
    assert run.said[names.LLMLAT_DECODE_STEPS] == max(lengths) - 1


@pytest.mark.parametrize("way", ["drafted", "looked up"])
def test_a_draft_saves_steps_and_is_no_operation_of_its_own(runs: dict[str, Run], way: str) -> None:
    said = runs[way].said
    assert said[names.LLMLAT_DECODE_TOKENS] == 7
    assert 0 < said[names.LLMLAT_DECODE_STEPS] <= 7
    assert runs["looked up"].told["timed"] == runs["plain"].told["timed"]


def test_phases_begin_and_end_where_a_caller_sees_it(runs: dict[str, Run]) -> None:
    run = runs["watched"]
    phases = run.phases()
    prefill, decode = phases[Phase.PREFILL.value], phases[Phase.DECODE.value]
    begun, passed, asked = run.seen("runs"), run.seen("ran"), run.seen("asked")
    assert len(begun) == len(passed) == len(asked) == 5
    assert prefill.start_ns <= begun[0]
    assert passed[0] <= prefill.end_ns <= asked[0]
    assert decode.start_ns == prefill.end_ns
    assert passed[4] <= decode.end_ns <= asked[4]
    assert len(phases) == 2


@pytest.mark.parametrize("way", STOPPED)
def test_what_is_stopped_ends_in_a_part_of_decode(runs: dict[str, Run], way: str) -> None:
    phases = runs[way].phases()
    assert not phases[Phase.PREFILL.value].is_cut
    assert phases[Phase.DECODE.value].is_cut


def test_a_model_that_fails_leaves_what_was_reached(runs: dict[str, Run]) -> None:
    said = runs["failing"].said
    assert said[names.ERROR_TYPE] == "MemoryError"
    assert said[names.LLMLAT_DECODE_STEPS] == 1
    assert runs["failing"].phases()[Phase.DECODE.value].is_cut
    assert runs["refused"].phases() == {}


def test_a_streamed_one_is_below_the_operation_that_shows_it(runs: dict[str, Run]) -> None:
    run = runs["streamed"]
    (engine,) = run.engines
    page = next(each for each in run.told["spans"] if "page" in each["name"])
    assert engine["parent"] == page["id"]
    assert run.said[names.GEN_AI_REQUEST_STREAM] is True


def test_generations_side_by_side_do_not_mix(runs: dict[str, Run]) -> None:
    said = [each["attributes"] for each in runs["side by side"].engines]
    assert sorted(each[names.LLMLAT_PREFILL_COMPUTED_TOKENS] for each in said) == [100, 200]
    assert {each[names.LLMLAT_DECODE_STEPS] for each in said} == {7}


def test_nothing_that_was_generated_is_told(runs: dict[str, Run]) -> None:
    assert runs["streamed"].told["timed"]
    spans = json.dumps([run.told["spans"] for run in runs.values()])
    assert runs["streamed"].told["timed"] not in spans
    assert not any(word in spans for word in ("enough", "gone", "no room", str(parts.model())))
