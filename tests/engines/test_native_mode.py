"""vLLM's own tracing, without our code in it, gives the same queue, prefill and decode as ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_semconv import attributes as names
from llmlat_semconv.aliases import PRODUCERS, Surface
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence
from tests.engines.three_processes import (
    ENGINE,
    HONEST,
    MS,
    NAMES,
    NATIVE_SPAN,
    Seen,
    explained,
    of_engine,
    spans_of,
)

pytestmark = pytest.mark.engines

(VLLM,) = (producer for producer in PRODUCERS if producer.name == "vllm")

THEIRS = {
    alias.phase.value: alias.key
    for alias in VLLM.on(Surface.SPAN_ATTRIBUTE)
    if alias.phase is not None
}
"""What vLLM's span says of which phase, in seconds; its decode goes on over evictions."""

OURS = names.LLMLAT_CONTRACT_VERSION.partition(".")[0]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> ExportTraceServiceRequest:
    """Told by vLLM and by us."""
    return spans_of(tmp_path_factory.mktemp("both"), is_native=True)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Told by vLLM alone, and explained."""
    folder = tmp_path_factory.mktemp("native")
    return explained(spans_of(folder, is_native=True, plugin=False), folder)


def without_ours(spans: ExportTraceServiceRequest) -> ExportTraceServiceRequest:
    """The same with nothing of the engine's but what it tells by itself."""
    theirs = ExportTraceServiceRequest.FromString(spans.SerializeToString())
    for sent in of_engine(theirs):
        for scope in sent.scope_spans:
            if scope.scope.name == "llmlat_otel":
                del scope.spans[:]
            told: tuple[Any, ...] = (sent.resource, *scope.spans)
            for attributes in (each.attributes for each in told):
                kept = [each for each in attributes if each.key.partition(".")[0] != OURS]
                del attributes[:]
                attributes.extend(kept)
    return theirs


def compared(phases_ns: Mapping[str, int]) -> dict[str, int]:
    """Queue, prefill and decode, evictions and all, as vLLM counts it."""
    told = {phase: phases_ns.get(phase, 0) for phase in THEIRS}
    told[Phase.DECODE.value] += phases_ns.get(Phase.PREEMPTED.value, 0)
    return told


def said(trace: Seen) -> dict[str, int]:
    return {phase: round(trace.account.attribute(key) * 1e9) for phase, key in THEIRS.items()}


def differing(one: Mapping[str, int], other: Mapping[str, int]) -> set[str]:
    return {phase for phase in one if abs(one[phase] - other[phase]) > MS}


def kinds_of(trace: Seen) -> set[str]:
    return {each["kind"] for each in trace.findings}


def evidence_of(trace: Seen, path: str) -> set[str]:
    return {each["evidence"] for each in trace.of_engine(path) if each["label"] in THEIRS}


def assert_alike(pairs: Mapping[str, tuple[Mapping[str, int], Mapping[str, int]]]) -> None:
    """To 1 ms: what both are made of is the same readings of one clock."""
    assert {name: differing(*pair) for name, pair in pairs.items() if differing(*pair)} == {}


def test_it_has_these_phases() -> None:
    assert {*THEIRS} == {Phase.QUEUE.value, Phase.PREFILL.value, Phase.DECODE.value}


def test_their_span_is_the_only_one_and_ours_tells_the_same(
    both: ExportTraceServiceRequest, tmp_path: Path
) -> None:
    seen = explained(both, tmp_path)
    assert sorted(seen) == sorted(NAMES)
    for name, trace in seen.items():
        engine = [each["name"] for each in trace.operations if each["service"] == ENGINE]
        assert engine == [NATIVE_SPAN], name
        assert kinds_of(trace) <= HONEST, name
        assert evidence_of(trace, "e2e") == {Evidence.MEASURED.value}, name
    assert_alike({each: (compared(seen[each].engine_ns("e2e")), said(seen[each])) for each in seen})
    assert seen["evicted"].account.attribute(names.LLMLAT_PREEMPTION_COUNT) > 0


def test_the_same_requests_without_our_code_are_explained_alike(
    both: ExportTraceServiceRequest, tmp_path: Path
) -> None:
    ours = explained(both, tmp_path)
    theirs = explained(without_ours(both), tmp_path)
    assert sorted(theirs) == sorted(ours)
    for name, trace in theirs.items():
        assert kinds_of(trace) <= HONEST, name
        assert evidence_of(trace, "e2e") == {Evidence.REPORTED.value}, name
        assert (trace.root["ttft"] is None) is (ours[name].root["ttft"] is None), name
    for path in ("e2e", "ttft"):
        assert_alike(
            {
                name: (compared(trace.engine_ns(path)), compared(ours[name].engine_ns(path)))
                for name, trace in theirs.items()
                if trace.root[path] is not None
            }
        )


def test_an_engine_without_our_code_is_explained_by_its_own_account(
    native: dict[str, Seen],
) -> None:
    assert sorted(native) == sorted(NAMES)
    for name, trace in native.items():
        told = said(trace)
        assert trace.account.attribute(names.LLMLAT_CONTRACT_VERSION) is None
        assert kinds_of(trace) <= HONEST, name
        assert evidence_of(trace, "e2e") == {Evidence.REPORTED.value}, name
        assert not differing(told, compared(trace.engine_ns("e2e"))), name
        if trace.root["ttft"] is not None:
            before = {**told, Phase.DECODE.value: 0}
            assert not differing(before, compared(trace.engine_ns("ttft"))), name
    assert native["queued"].root["e2e"]["dominant"] == Phase.QUEUE.value
