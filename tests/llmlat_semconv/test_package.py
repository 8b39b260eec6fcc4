"""The generated package: what the SDK and the processor may rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest

import check
from llmlat_semconv import attributes, events, metrics, phases, spans, values, version
from llmlat_semconv.phases import ENVELOPES, FACTS, ORDER_BY_BOUNDARY, Phase
from llmlat_semconv.values import Boundary, FindingKind, PhaseClass, SectionLabel
from registry import constant
from resolve import load

REGISTRY = load(check.SEMCONV)

# The table of the contract: boundary, phases with their class, in order.
TABLE = {
    Boundary.CLIENT: [
        ("prepare", "overhead"),
        ("pool_wait", "queueing"),
        ("connect", "network"),
        ("send", "network"),
        ("wait", "remote"),
        ("first_content", "remote"),
        ("stream", "remote"),
        ("consumer", "idle"),
        ("finalize", "overhead"),
        ("backoff", "idle"),
    ],
    Boundary.GATEWAY: [
        ("admission", "overhead"),
        ("route", "overhead"),
        ("upstream", "remote"),
        ("upstream_stream", "remote"),
        ("relay", "transfer"),
    ],
    Boundary.ENGINE: [
        ("load", "transfer"),
        ("encode", "compute"),
        ("tokenize", "compute"),
        ("queue", "queueing"),
        ("kv_transfer", "transfer"),
        ("prefill", "compute"),
        ("decode", "compute"),
        ("preempted", "queueing"),
        ("detokenize", "overhead"),
    ],
    Boundary.AGENT: [("tool", "compute"), ("retrieval", "compute"), ("human_wait", "idle")],
}
ENUMS = [Phase, *(one for one in values.Value.__subclasses__() if one is not Phase)]
METRICS = [one for one in vars(metrics).values() if isinstance(one, metrics.Metric)]
HISTOGRAMS = [one for one in METRICS if one.instrument == "histogram"]


def constants(module: object) -> dict[str, str]:
    return {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }


@pytest.mark.parametrize("boundary", list(Boundary))
def test_every_phase_of_the_contract_is_there_with_its_class_and_in_order(
    boundary: Boundary,
) -> None:
    found = [(phase, FACTS[phase].phase_class) for phase in ORDER_BY_BOUNDARY[boundary]]

    assert found == TABLE[boundary]


def test_every_phase_has_its_facts() -> None:
    assert list(FACTS) == list(Phase)
    assert all(facts.name is phase for phase, facts in FACTS.items())
    assert all(facts.start_edge and facts.end_edge for facts in FACTS.values())


def test_the_envelopes_are_the_views_of_somebody_else_s_time() -> None:
    assert sorted(ENVELOPES) == ["first_content", "stream", "upstream", "upstream_stream", "wait"]
    assert {p for p in Phase if FACTS[p].phase_class is PhaseClass.REMOTE} == ENVELOPES


def test_the_nested_phases_are_those_of_the_contract() -> None:
    nested = {phase: facts.nested_in for phase, facts in FACTS.items() if facts.nested_in}

    assert nested == {
        "consumer": ("first_content", "stream"),
        "kv_transfer": ("queue",),
        "preempted": ("decode",),
    }


@pytest.mark.parametrize("boundary", list(Boundary))
def test_the_order_of_a_boundary_is_strict(boundary: Boundary) -> None:
    orders = [FACTS[phase].order for phase in ORDER_BY_BOUNDARY[boundary]]

    assert all(earlier < later for earlier, later in pairwise(orders))
    assert {FACTS[phase].boundary for phase in ORDER_BY_BOUNDARY[boundary]} == {boundary}


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.__name__)
def test_every_value_of_an_enum_is_its_plain_string(enum: type[values.Value]) -> None:
    assert len(enum) > 1
    for member in enum:
        text = member.value
        assert enum(text) is member
        assert (str(member), f"{member}", "".join([member]), hash(member)) == (
            text,
            text,
            text,
            hash(text),
        )
        assert json.dumps(member) == json.dumps(text)
        assert member.name == text.upper()


def test_section_labels_are_all_phases_and_four_more() -> None:
    labels = [label.value for label in SectionLabel]

    assert labels == [*(phase.value for phase in Phase), "transit", "held", "work", "unobserved"]


def test_every_attribute_that_is_written_out_has_its_constant() -> None:
    written = {one.key for one in REGISTRY.attributes if one.template is None}
    found = constants(attributes)

    assert {name: value for name, value in found.items() if name != constant(value)} == {}
    assert written <= set(found.values())


def test_every_event_has_its_constant() -> None:
    assert constants(events) == {constant(one.name): one.name for one in REGISTRY.events}


def test_every_metric_has_its_constant_and_unit() -> None:
    found = {name: one for name, one in vars(metrics).items() if isinstance(one, metrics.Metric)}

    assert {name: one.name for name, one in found.items()} == {
        constant(one.name): one.name for one in REGISTRY.metrics
    }
    assert {one.name: one.unit for one in METRICS} == {
        one.name: one.unit for one in REGISTRY.metrics
    }


def test_the_names_per_phase_label_and_finding_are_those_of_the_registry() -> None:
    made = {
        *map(phases.duration_attribute, Phase),
        *map(phases.reported_duration_attribute, Phase),
        *map(phases.reported_evidence_attribute, Phase),
        *map(phases.critical_path_duration_attribute, SectionLabel),
        *map(phases.ttft_path_duration_attribute, SectionLabel),
        *map(phases.finding_attribute, FindingKind),
    }

    assert made == {one.key for one in REGISTRY.attributes if one.template}
    assert phases.duration_attribute(Phase.CONSUMER) == attributes.LLMLAT_CONSUMER_DURATION
    assert phases.critical_path_duration_attribute(Phase.QUEUE).endswith(".queue.duration")


def test_a_span_name_leaves_out_what_is_unknown() -> None:
    assert spans.phase_span_name(Phase.QUEUE) == "phase queue"
    assert spans.inference_span_name("chat", "gemma") == "chat gemma"
    assert spans.inference_span_name("chat", None) == "chat"
    assert spans.attempt_span_name(None) == "attempt"
    assert spans.gateway_span_name("/v1/chat/completions") == "gateway /v1/chat/completions"
    assert spans.engine_span_name("chat") == "engine chat"
    assert spans.agent_span_name("adviser") == "invoke_agent adviser"
    assert spans.tool_span_name("pricing") == "execute_tool pricing"
    assert spans.retrieval_span_name("policies") == "retrieval policies"
    assert spans.section_span_name(SectionLabel.TRANSIT, "llm-gateway") == "transit llm-gateway"
    assert spans.lane_span_name() == "critical path"


def test_phase_spans_and_the_lane_carry_no_attribute_of_the_operation_above_them() -> None:
    bare = ("llmlat.internal.phase", "llmlat.internal.lane", "llmlat.internal.section")
    keys = [ref.key for span in REGISTRY.spans if span.type in bare for ref in span.refs]

    assert keys
    assert [key for key in keys if key.startswith("gen_ai.")] == []


def test_token_counts_of_an_engine_are_never_counted_as_usage() -> None:
    [engine] = [span for span in REGISTRY.spans if span.kind == "server" and "engine" in span.type]

    assert [ref.key for ref in engine.refs if ref.key.startswith("gen_ai.usage.")] == []


@pytest.mark.parametrize("histogram", HISTOGRAMS, ids=lambda one: one.name)
def test_the_buckets_of_a_histogram_strictly_grow(histogram: metrics.Metric) -> None:
    is_share = histogram.name.endswith(".share")
    assert histogram.unit == ("1" if is_share else "s")
    assert not is_share or histogram.boundaries[-1] == 1
    assert all(low < high for low, high in pairwise((0.0, *histogram.boundaries)))


def test_phases_and_gaps_are_told_apart_below_ten_milliseconds() -> None:
    gaps = metrics.STREAM_GAP_BOUNDARIES_S

    assert sum(edge < 0.01 for edge in metrics.LLMLAT_PHASE_DURATION.boundaries) >= 3
    assert sum(edge < 0.01 for edge in gaps) >= 3
    assert all(low < high for low, high in pairwise((0.0, *gaps)))


def test_the_schema_url_ends_in_the_version() -> None:
    assert version.CONTRACT_VERSION == "0.1.0"
    assert version.SCHEMA_URL == "https://llmlat.dev/schemas/0.1.0"


def test_the_package_needs_the_standard_library_only() -> None:
    package = check.SEMCONV / "llmlat_semconv"
    names = [path.stem for path in package.glob("*.py") if path.stem != "__init__"]
    program = (
        f"import sys; sys.path.insert(0, {str(check.SEMCONV)!r})\n"
        f"for name in {names!r}: __import__(f'llmlat_semconv.{{name}}')\n"
        "foreign = {name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names\n"
        "print(sorted(foreign - {'llmlat_semconv', '__main__'}))\n"
    )

    # -I and -S: neither the environment nor site-packages can help.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.stderr, done.stdout) == ("", "[]\n")
