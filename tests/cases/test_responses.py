"""Holds the SDK to what other producers put into their responses: `producers/responses/*.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.reported import (
    read_dynamo_timing,
    read_headers,
    read_llama_timings,
    read_localai_timings,
    read_ollama_durations,
    read_vllm_metrics,
)
from llmlat_semconv.aliases import PRODUCERS, Surface

FOLDER: Final = Path(__file__).parent / "producers" / "responses"
KEYS: Final = {
    *("name", "producer", "versions", "source", "note"),
    *("response", "expected", "look_alikes"),
}
OF_RESPONSES: Final = {Surface.RESPONSE_FIELD, Surface.RESPONSE_HEADER}
MS: Final = 1_000_000

Reader = Callable[[Any, PhaseRecorder, Attributes], None]

READERS: Final[Mapping[str, tuple[Reader, tuple[str, ...]]]] = {
    "dynamo_response": (read_dynamo_timing, ("body", "nvext", "timing")),
    "llama_cpp": (read_llama_timings, ("body", "timings")),
    "local_ai": (read_localai_timings, ("body", "usage")),
    "ollama": (read_ollama_durations, ("body",)),
    "tgi": (read_headers, ("headers",)),
    "vllm_response": (read_vllm_metrics, ("body", "metrics")),
}
"""Who reads a producer's responses, and where in them."""


@dataclass(frozen=True, slots=True)
class ResponseCase:
    """One response and what it tells."""

    name: str
    producer: str
    source: str
    response: Mapping[str, Any]
    expected: Mapping[str, Any]


def _files() -> list[dict[str, Any]]:
    paths = sorted(FOLDER.glob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _cases() -> list[ResponseCase]:
    cases: list[ResponseCase] = []
    for file in _files():
        alike = (
            (f"{file['name']}, look-alike {number}", each)
            for number, each in enumerate(file["look_alikes"], 1)
        )
        for name, each in ((file["name"], file), *alike):
            cases.append(
                ResponseCase(
                    name, file["producer"], each["source"], each["response"], each["expected"]
                )
            )
    return cases


CASES: Final = _cases()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_response_tells_what_its_source_says(case: ResponseCase) -> None:
    reader, place = READERS[case.producer]
    said: Any = case.response
    for key in place:
        said = said[key]
    marks = PhaseRecorder(0, Anchor(0, 0, 0), 1)
    facts: Attributes = {}
    reader(said, marks, facts)
    phases = {
        each.phase.value: {"ms": each.duration_ns / MS, "evidence": each.evidence.value}
        for each in marks.finish(1).reported
    }
    assert phases == case.expected["phases"]
    assert {key: facts[key] for key in facts if key.endswith("tokens")} == case.expected["counts"]


def test_every_response_names_its_producer_and_its_source() -> None:
    for file in _files():
        assert file.keys() == KEYS, file["name"]
    assert all("://" in case.source for case in CASES)


def test_every_producer_with_responses_has_a_case_and_a_look_alike() -> None:
    cased = {file["producer"] for file in _files()}
    alike = {file["producer"] for file in _files() if file["look_alikes"]}
    told = {
        each.name for each in PRODUCERS if OF_RESPONSES & {alias.surface for alias in each.aliases}
    }
    assert told == cased == alike == READERS.keys()
