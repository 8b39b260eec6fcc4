"""Each breach of a rule of the contract is caught and explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Caught = Callable[[str, list[tuple[str, str]], str], str]
MAX_BATCH = """\
  - key: llmlat.batch.size.max
    stability: development
    brief: Most requests in the batch while this one was in it.
    annotations: { unit: '{request}' }
    type: int
"""


def added(key: str) -> str:
    """An attribute beside the batch size, and sound but for its name."""
    return MAX_BATCH.replace("llmlat.batch.size.max", key) + MAX_BATCH


# Each row: in which file somebody put what for what, and which name is blamed for what.
BREACHES = [
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, added("llmlat.batch.size"))],
        "llmlat.batch.size",
        "also the namespace of `llmlat.batch.size.max`",
        id="an attribute's name is also a namespace",
    ),
    pytest.param(
        "model/paths.yaml",
        [("key: llmlat.critical_path.total_work", "key: llmlat.critical_path.work")],
        "llmlat.critical_path.work",
        "also the namespace of `llmlat.critical_path.work.duration`",
        id="an attribute's name is the namespace of one made from a template",
    ),
    pytest.param(
        "model/events.yaml",
        [("name: llmlat.first_content", "name: llmlat.finding.first")],
        "llmlat.finding",
        "this event is also the namespace",
        id="an event's name is also a namespace",
    ),
    pytest.param(
        "model/metrics.yaml",
        [("name: llmlat.finding.count", "name: llmlat.phase.duration.count")],
        "llmlat.phase.duration",
        "this metric is also the namespace",
        id="a metric's name is also a namespace",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, added("llmlat.batch.size_max"))],
        "llmlat.batch.size.max",
        "gives the constant LLMLAT_BATCH_SIZE_MAX",
        id="two names give one constant",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH.replace("    annotations: { unit: '{request}' }\n", ""))],
        "llmlat.batch.size.max",
        "numeric without a unit",
        id="a number without a unit",
    ),
    pytest.param(
        "model/paths.yaml",
        [("examples: [queue, decode, unobserved]", "annotations: { unit: s }")],
        "llmlat.critical_path.dominant_phase",
        "a string with a unit",
        id="a text with a unit",
    ),
    pytest.param(
        "model/phases.yaml",
        [("            end: last request byte written\n", "")],
        "send",
        "without its end edge",
        id="a phase without its end edge",
    ),
    pytest.param(
        "model/phases.yaml",
        [("            start: first request byte written\n", "")],
        "send",
        "without its start edge",
        id="a phase without its start edge",
    ),
    pytest.param(
        "model/phases.yaml",
        [("start: first request byte written", "start: last request byte written")],
        "send",
        "starts and ends at one edge",
        id="a phase of no length",
    ),
    pytest.param(
        "model/phases.yaml",
        [("nested_in: [queue]", "nested_in: [wait]")],
        "kv_transfer",
        "no phase of its boundary",
        id="a phase nested in one of another boundary",
    ),
    pytest.param(
        "model/phases.yaml",
        [("nested_in: [queue]", "nested_in: [decode]")],
        "kv_transfer",
        "comes later or is nested itself",
        id="a phase nested in one that comes later",
    ),
    pytest.param(
        "model/phases.yaml",
        [
            (
                (
                    "boundary: agent\n"
                    "            class: compute\n"
                    "            start: retrieval asked for"
                ),
                (
                    "boundary: client\n"
                    "            class: compute\n"
                    "            start: retrieval asked for"
                ),
            )
        ],
        "retrieval",
        "apart from the other phases of boundary `client`",
        id="a boundary in two pieces",
    ),
    pytest.param(
        "model/phases.yaml",
        [("start: attempt failed", "envelope: true\n            start: attempt failed")],
        "backoff",
        "class and envelope do not fit",
        id="an envelope that is not remote",
    ),
    pytest.param(
        "model/phases.yaml",
        [
            (
                "class: idle\n            start: attempt failed",
                "class: pausing\n            start: attempt failed",
            )
        ],
        "backoff",
        "unknown class `pausing`",
        id="an unknown class",
    ),
    pytest.param(
        "model/engine.yaml",
        [("key: llmlat.preemption.count", "key: llmlat.Preemption.count")],
        "llmlat.Preemption.count",
        "not lower-case dotted snake_case",
        id="a name with a capital",
    ),
    pytest.param(
        "model/engine.yaml",
        [("key: llmlat.preemption.count", "key: gen_ai.preemption.count")],
        "gen_ai.preemption.count",
        "under another root",
        id="a name of ours under somebody else's root",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH + MAX_BATCH)],
        "llmlat.batch.size.max",
        "defined twice",
        id="a name defined twice",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, added("llmlat.batch.tokens"))],
        "llmlat.batch.tokens",
        "stands on no span, event, metric or group",
        id="an attribute that stands nowhere",
    ),
    pytest.param(
        "model/events.yaml",
        [("ref: gen_ai.tool.call.id", "ref: gen_ai.tool.call.number")],
        "llmlat.tool_call",
        "`gen_ai.tool.call.number`, which is nowhere defined",
        id="a reference to nothing",
    ),
    pytest.param(
        "model/stream.yaml",
        [("[0.001, 0.002, 0.005", "[0.001, 0.005, 0.002")],
        "llmlat.stream.gap.bucket_counts",
        "do not strictly grow",
        id="bucket boundaries out of order",
    ),
    pytest.param(
        "model/metrics.yaml",
        [("instrument: counter", "instrument: histogram")],
        "llmlat.finding.count",
        "boundaries and instrument do not fit",
        id="a histogram without boundaries",
    ),
    pytest.param(
        "model/phases.yaml",
        [("annotations: { enum: PhaseClass }", "annotations: { enum: Evidence }")],
        "llmlat.phase.evidence",
        "class Evidence with other values",
        id="two sets of values under one class",
    ),
    pytest.param(
        "model/operation.yaml",
        [("id: lost, value: lost", "id: lost, value: won")],
        "llmlat.attempt.outcome",
        "value `won` given twice",
        id="one value twice in an enum",
    ),
    pytest.param(
        "model/operation.yaml",
        [("    examples: [adviser]\n", "")],
        "llmlat.request.workflow",
        "text without an example",
        id="text without an example",
    ),
    pytest.param(
        "model/spans.yaml",
        [("name: { note: 'engine {gen_ai.operation.name}' }", "name: { note: 'engine' }")],
        "llmlat.server.engine",
        "other placeholders than parameters",
        id="a span's name that its function cannot make",
    ),
    pytest.param(
        "model/engine.yaml",
        [
            (
                MAX_BATCH,
                MAX_BATCH + "    deprecated: { reason: renamed, renamed_to: llmlat.batch.most }\n",
            )
        ],
        "llmlat.batch.size.max",
        "renamed to `llmlat.batch.most`, which is not there",
        id="a renaming that leads nowhere",
    ),
]


@pytest.mark.parametrize(("file", "changes", "name", "what"), BREACHES)
def test_a_breach_of_a_rule_is_caught(
    caught: Caught, file: str, changes: list[tuple[str, str]], name: str, what: str
) -> None:
    assert what in caught(file, changes, name)
