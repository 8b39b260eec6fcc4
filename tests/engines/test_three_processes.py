"""One trace over app, gateway and engine: both paths go through the engine's own phases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence, SectionLabel
from tests.engines.three_processes import (
    APP,
    ENGINE,
    GATEWAY,
    HONEST,
    MS,
    NAMES,
    PAIRS,
    Seen,
    explained,
    of_engine,
    spans_of,
)
from tests.engines.vllm_server import OWN_CLOCK

pytestmark = pytest.mark.engines

AHEAD_NS = 5_000_000_000_000
"""By how much the clock of the engine is ahead, where it has its own."""

MONOTONIC = {names.LLMLAT_CLOCK_MONOTONIC_START, names.LLMLAT_CLOCK_ANCHOR_MONOTONIC}

BEFORE_OUTPUT = {Phase.TOKENIZE.value, Phase.QUEUE.value, Phase.PREFILL.value}


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> ExportTraceServiceRequest:
    return spans_of(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module", params=["one clock", "the engine's own clock"])
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Seen]:
    folder = tmp_path_factory.mktemp("seen")
    if request.param == "one clock":
        return explained(request.getfixturevalue("spans"), folder)
    return explained(spans_of(folder, clock=OWN_CLOCK), folder)


def paths(seen: dict[str, Seen]) -> Iterator[tuple[str, Seen, str]]:
    for name, trace in seen.items():
        for path in ("e2e", "ttft"):
            if trace.root[path] is not None:
                yield name, trace, path


def difference(one: dict[str, int], other: dict[str, int]) -> int:
    """The largest of any phase; one that is not there took no time."""
    return max(abs(one.get(each, 0) - other.get(each, 0)) for each in {*one, *other})


def test_each_question_is_one_trace_over_three_processes(
    seen: dict[str, Seen], request: pytest.FixtureRequest
) -> None:
    assert sorted(seen) == sorted(NAMES)
    is_apart = "own" in request.node.callspec.id
    for trace in seen.values():
        services = [each["service"] for each in trace.operations]
        assert services == [APP, APP, GATEWAY, GATEWAY, ENGINE]
        clocks = {each["service"]: each["clock_domain"] for each in trace.operations}
        assert clocks[GATEWAY] == clocks[APP]
        assert (clocks[ENGINE] != clocks[APP]) is is_apart
        assert trace.document["complete"]


def test_nothing_is_found_wrong(seen: dict[str, Seen]) -> None:
    for name, trace in seen.items():
        assert {each["kind"] for each in trace.findings} <= HONEST, name
        for held in trace.findings:
            assert abs(held["amount_ns"] - held_ns(trace, held["of"])) < MS, name


def held_ns(trace: Seen, call: str) -> int:
    """For how much longer the engine had tokens to give than its caller got any."""
    engine, caller = trace.account.phases_ns, trace.accounts[call].phases_ns
    decode = engine[Phase.DECODE.value] + engine.get(Phase.PREEMPTED.value, 0)
    return decode - caller.get(Phase.FIRST_CONTENT.value, 0) - caller[Phase.STREAM.value]


def test_sections_lie_end_to_end(seen: dict[str, Seen]) -> None:
    for name, trace, path in paths(seen):
        at_ns = 0
        for section in trace.root[path]["sections"]:
            assert section["start_ns"] == at_ns, name
            assert section["duration_ns"] > 0, name
            at_ns += section["duration_ns"]
        assert trace.root[path]["duration_ns"] == at_ns, name
        assert path == "ttft" or trace.root["duration_ns"] == at_ns, name


def test_the_whole_answer_has_all_phases_of_the_engine(seen: dict[str, Seen]) -> None:
    for name, trace in seen.items():
        assert {*BEFORE_OUTPUT, Phase.DECODE.value} <= {*trace.account.phases_ns}, name
        assert difference(trace.engine_ns("e2e"), trace.account.phases_ns) < MS, name


def test_the_first_content_has_those_up_to_the_first_token(seen: dict[str, Seen]) -> None:
    found = 0
    for name, trace, path in paths(seen):
        if path == "ttft":
            own = {each: trace.account.phases_ns[each] for each in BEFORE_OUTPUT}
            assert difference(trace.engine_ns(path), own) < MS, (
                name,
                trace.root[path],
                trace.findings,
            )
            found += 1
    assert found == sum(not name.startswith(("ahead", "rival")) for name in NAMES)


def test_phases_of_the_engine_are_measured_and_in_their_order(seen: dict[str, Seen]) -> None:
    for name, trace, path in paths(seen):
        phases = [each for each in trace.of_engine(path) if each["label"] in trace.engine_ns(path)]
        assert {each["evidence"] for each in phases} == {Evidence.MEASURED.value}, name
        order = [phase.value for phase in Phase if phase is not Phase.PREEMPTED]
        places = [order.index(each["label"]) for each in phases if each["label"] in order]
        assert places == sorted(places), name
        # All time beside them is that between two of its processes, or on its way.
        beside = {each["label"] for each in trace.of_engine(path)} - {*trace.engine_ns(path)}
        assert beside <= {SectionLabel.UNOBSERVED.value}, name


def test_a_cached_prefix_is_a_short_prefill(seen: dict[str, Seen]) -> None:
    def shortest_ns(kind: str) -> int:
        of_kind = [seen[f"{kind} {number}"] for number in range(PAIRS)]
        return min(each.engine_ns("e2e")[Phase.PREFILL.value] for each in of_kind)

    for number in range(PAIRS):
        cold, cached = (seen[f"{kind} {number}"].account for kind in ("cold", "cached"))
        computed = cold.attribute(names.LLMLAT_PREFILL_COMPUTED_TOKENS)
        assert cold.attribute(names.LLMLAT_PREFILL_CACHED_TOKENS) == 0
        assert cached.attribute(names.LLMLAT_PREFILL_CACHED_TOKENS) == computed // 32 * 32
        assert cached.attribute(names.LLMLAT_PREFILL_COMPUTED_TOKENS) == computed % 32
    assert shortest_ns("cached") < shortest_ns("cold")


def ahead_of(trace: Seen) -> int:
    waiting = trace.account.attribute(names.LLMLAT_ENGINE_REQUESTS_WAITING)
    running = trace.account.attribute(names.LLMLAT_ENGINE_REQUESTS_RUNNING)
    return int(waiting + running)


def test_a_saturated_engine_is_its_queue(seen: dict[str, Seen]) -> None:
    queued = seen["queued"]
    assert queued.root["e2e"]["dominant"] == Phase.QUEUE.value
    assert queued.root["ttft"]["dominant"] == Phase.QUEUE.value
    assert ahead_of(queued) >= 4
    assert ahead_of(seen["alone"]) == 0


def test_an_eviction_is_its_own_section_amid_decode(seen: dict[str, Seen]) -> None:
    evicted = seen["evicted"]
    assert evicted.account.attribute(names.LLMLAT_PREEMPTION_COUNT) > 0
    assert evicted.root["e2e"]["dominant"] == Phase.PREEMPTED.value
    labels = [each["label"] for each in evicted.of_engine("e2e")]
    place = labels.index(Phase.PREEMPTED.value)
    assert labels[place - 1 : place + 2 : 2] == [Phase.DECODE.value] * 2
    for name, trace in seen.items():
        is_evicted = bool(trace.account.attribute(names.LLMLAT_PREEMPTION_COUNT))
        assert (Phase.PREEMPTED.value in trace.engine_ns("e2e")) is is_evicted, name


@pytest.mark.parametrize("is_wall_ahead", [False, True], ids=["monotonic", "wall"])
def test_another_clock_changes_no_section(
    spans: ExportTraceServiceRequest, tmp_path: Path, *, is_wall_ahead: bool
) -> None:
    """The very same requests, as they would have been told with the engine on another clock."""
    elsewhere = ExportTraceServiceRequest.FromString(spans.SerializeToString())
    for each in of_engine(elsewhere):
        _move(each, is_wall_ahead=is_wall_ahead)
    here, there = explained(spans, tmp_path), explained(elsewhere, tmp_path)
    for name, trace, path in paths(here):
        sections, moved = (each.root[path]["sections"] for each in (trace, there[name]))
        assert len({each["clock_domain"] for each in there[name].operations}) == 2
        for section, other in zip(sections, moved, strict=True):
            assert [section["span_id"], section["label"]] == [other["span_id"], other["label"]]
            assert abs(section["duration_ns"] - other["duration_ns"]) < MS, name


def _move(sent: ResourceSpans, *, is_wall_ahead: bool) -> None:
    """Have an engine's clock be another one."""
    moved = MONOTONIC | ({names.LLMLAT_CLOCK_ANCHOR_WALL} if is_wall_ahead else set())
    spans = [span for scope in sent.scope_spans for span in scope.spans]
    for attributes in (sent.resource.attributes, *(span.attributes for span in spans)):
        for each in attributes:
            if each.key == names.LLMLAT_CLOCK_DOMAIN_ID:
                each.value.string_value = "elsewhere"
            elif each.key in moved:
                each.value.int_value += AHEAD_NS
    for span in spans if is_wall_ahead else ():
        span.start_time_unix_nano += AHEAD_NS
        span.end_time_unix_nano += AHEAD_NS
