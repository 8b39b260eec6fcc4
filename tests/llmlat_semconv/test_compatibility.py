"""A later contract that takes back what a released one promised is caught and explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import check
from compatibility import compatibility_problems, released_snapshots
from registry import Attribute, Phase
from resolve import load

Plant = Callable[[str, str, str], None]
Caught = Callable[[str, list[tuple[str, str]], str], str]
SLACK = """\
  - key: llmlat.critical_path.slack
    stability: development
    brief: How much longer an operation off the path could have been without moving the root's end.
    note: A lower bound. Absent on the path.
    annotations: { unit: s }
    type: double
"""
SLACK_USE = """\
      - ref: llmlat.critical_path.slack
        requirement_level: { conditionally_required: 'Off the path, where it is known.' }
"""
MAX_BATCH = """\
  - key: llmlat.batch.size.max
    stability: development
    brief: Most requests in the batch while this one was in it.
    annotations: { unit: '{request}' }
    type: int
"""


# Each row: in which file somebody put what for what, and which name is blamed for what.
BROKEN_PROMISES = [
    pytest.param(
        "model/paths.yaml",
        [(SLACK, ""), (SLACK_USE, "")],
        "llmlat.critical_path.slack",
        "removed from the attributes",
        id="a removed attribute",
    ),
    pytest.param(
        "model/phases.yaml",
        [("value: detokenize", "value: text_out")],
        "detokenize",
        "removed from the phases",
        id="a renamed phase",
    ),
    pytest.param(
        "model/events.yaml",
        [("name: llmlat.join", "name: llmlat.joined")],
        "llmlat.join",
        "removed from the events",
        id="a renamed event",
    ),
    pytest.param(
        "model/metrics.yaml",
        [("name: llmlat.finding.count", "name: llmlat.findings")],
        "llmlat.finding.count",
        "removed from the metrics",
        id="a renamed metric",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH.replace("type: int", "type: double"))],
        "llmlat.batch.size.max",
        "type changed from 'int' to 'double'",
        id="a changed type",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH.replace("{request}", "{sequence}"))],
        "llmlat.batch.size.max",
        "unit changed from '{request}' to '{sequence}'",
        id="a changed unit",
    ),
    pytest.param(
        "templates.yaml",
        [
            (
                (
                    "key: llmlat.{member}.duration\n"
                    "    over: llmlat.phase.name\n"
                    "    type: double\n"
                    "    unit: s"
                ),
                (
                    "key: llmlat.{member}.duration\n"
                    "    over: llmlat.phase.name\n"
                    "    type: double\n"
                    "    unit: ms"
                ),
            )
        ],
        "llmlat.queue.duration",
        "unit changed from 's' to 'ms'",
        id="a changed unit of all phases",
    ),
    pytest.param(
        "model/phases.yaml",
        [("start: request ready to be scheduled", "start: request dispatched by the API")],
        "queue",
        "start changed from 'request ready to be scheduled'",
        id="a changed start edge",
    ),
    pytest.param(
        "model/phases.yaml",
        [("end: stream closed or body parsed", "end: stream closed")],
        "finalize",
        "end changed from 'stream closed or body parsed'",
        id="a changed end edge",
    ),
    pytest.param(
        "model/phases.yaml",
        [("start_else: first response body event (not streamed)", "start_else: never")],
        "finalize",
        "start changed",
        id="a changed edge of a call that has no start edge",
    ),
    pytest.param(
        "model/phases.yaml",
        [
            (
                "class: network\n            start: first request byte written",
                "class: transfer\n            start: first request byte written",
            )
        ],
        "send",
        "class changed from 'network' to 'transfer'",
        id="a changed class",
    ),
    pytest.param(
        "model/phases.yaml",
        [("            nested_in: [decode]\n", "")],
        "preempted",
        "nested_in changed from ['decode'] to []",
        id="a phase that is no longer nested",
    ),
    pytest.param(
        "model/operation.yaml",
        [("id: lost, value: lost", "id: lost, value: beaten")],
        "llmlat.attempt.outcome",
        "value 'lost' removed",
        id="a removed value",
    ),
    pytest.param(
        "model/operation.yaml",
        [("brief: A rival's response was used.", "brief: It was slower than a rival.")],
        "llmlat.attempt.outcome",
        "value 'lost' changed its meaning",
        id="a value with another meaning",
    ),
    pytest.param(
        "model/spans.yaml",
        [
            (
                "kind: client\n    stability: development\n    brief: One per HTTP attempt",
                "kind: internal\n    stability: development\n    brief: One per HTTP attempt",
            )
        ],
        "llmlat.client.attempt",
        "kind changed from 'client' to 'internal'",
        id="a span of another kind",
    ),
    pytest.param(
        "model/spans.yaml",
        [("note: 'phase {llmlat.phase.name}'", "note: 'step {llmlat.phase.name}'")],
        "llmlat.internal.phase",
        "name changed from 'phase {llmlat.phase.name}'",
        id="a span with another name",
    ),
    pytest.param(
        "model/stream.yaml",
        [("[0.001, 0.002, 0.005", "[0.002, 0.005")],
        "llmlat.stream.gap.bucket_counts",
        "bucket boundaries changed",
        id="other bucket boundaries in one version",
    ),
    pytest.param(
        "model/phases.yaml",
        [
            (
                "        - { id: idle, value: idle",
                (
                    "        - { id: lazy, value: lazy, stability: beta, brief: Slow. }\n"
                    "        - { id: idle, value: idle"
                ),
            )
        ],
        "llmlat.phase.class",
        "values ['lazy'] not in 0.1.0, which is released",
        id="a new value in one version",
    ),
    pytest.param(
        "model/manifest.yaml",
        [("schemas/0.1.0", "schemas/0.0.9")],
        "0.0.9",
        "older than 0.1.0, which is released",
        id="a version that goes back",
    ),
]


REGISTRY = load(check.SEMCONV)
RELEASED = released_snapshots(check.SEMCONV)


@pytest.mark.parametrize(("file", "changes", "name", "what"), BROKEN_PROMISES)
def test_a_broken_promise_is_caught(
    caught: Caught, file: str, changes: list[tuple[str, str]], name: str, what: str
) -> None:
    assert what in caught(file, changes, name)


@given(st.sampled_from(REGISTRY.attributes))
def test_no_attribute_can_be_removed(attribute: Attribute) -> None:
    left = tuple(one for one in REGISTRY.attributes if one != attribute)

    [problem] = compatibility_problems(replace(REGISTRY, attributes=left), RELEASED)

    assert (problem.name, problem.what) == (attribute.key, "removed from the attributes")


@given(st.sampled_from(REGISTRY.phases), st.sampled_from(("start", "end")), st.text(min_size=1))
def test_no_edge_can_be_changed(phase: Phase, edge: str, more: str) -> None:
    start, end = (getattr(phase, one) + (more if one == edge else "") for one in ("start", "end"))
    changed = replace(phase, start=start, end=end)
    phases = tuple(changed if one == phase else one for one in REGISTRY.phases)

    [problem] = compatibility_problems(replace(REGISTRY, phases=phases), RELEASED)

    assert problem.name == phase.name
    assert problem.what.startswith(f"{edge} changed")


def test_a_new_name_needs_a_new_minor_version(contract: Path, plant: Plant, caught: Caught) -> None:
    name = "llmlat.batch.tokens"
    added = MAX_BATCH.replace("llmlat.batch.size.max", name) + MAX_BATCH
    use = "      - ref: llmlat.batch.size.max\n"
    changes = [(MAX_BATCH, added), (use, f"      - ref: {name}\n{use}")]
    assert "not in 0.1.0, which is released" in caught("model/engine.yaml", changes, name)

    plant("model/manifest.yaml", "schemas/0.1.0", "schemas/0.2.0")
    assert check.problems(contract) == []


def test_other_bucket_boundaries_are_fine_in_a_new_minor_version(
    contract: Path, plant: Plant
) -> None:
    plant("model/stream.yaml", "[0.001, 0.002, 0.005", "[0.002, 0.005")
    plant("model/manifest.yaml", "schemas/0.1.0", "schemas/0.2.0")

    assert check.problems(contract) == []


def test_a_renamed_attribute_stays_and_says_what_replaces_it(contract: Path, plant: Plant) -> None:
    renamed = MAX_BATCH + "    deprecated: {reason: renamed, renamed_to: llmlat.decode.steps}\n"
    plant("model/engine.yaml", MAX_BATCH, renamed)

    assert check.problems(contract) == []
