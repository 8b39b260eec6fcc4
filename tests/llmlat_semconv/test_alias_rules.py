"""Names of other producers: each breach of their rules is caught, and each is read as written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import check
from aliases import ALIASES, read_producers
from llmlat_semconv.aliases import PRODUCERS, VLLM, Surface
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence
from problems import UnreadableContractError

SOUND = """\
producers:
  - name: engine
    title: An engine
    versions: 1.0 to 1.2
    sources: [https://example.com/engine trace.py (1.2)]
    scopes: [{ scope: engine.tracer, resource: engine.name }]
    operations: [{ name: request }]
    aliases:
      - surface: span_attribute
        key: queue_ms
        phase: queue
        unit: ms
        from: put into the queue
        to: taken out of it
      - surface: span_name
        key: forward
        phase: prefill
        unit: span
        from: begun
        to: first token
      - surface: span_event
        key: evicted
        phase: preempted
        edge: start
        until: [forward]
        unit: event
        from: evicted
        to: begun again
"""
RESPONSE = """\
producers:
  - name: engine
    title: An engine
    versions: 1.0.0
    sources: [https://example.com/engine]
    marks: [{ surface: response_header, key: x-engine }]
    aliases:
      - surface: response_header
        key: x-queue-time
        phase: queue
        evidence: bounded
        unit: ms
        from: a
        to: b
"""

# Each row: what somebody put for what in the sound file, which name is blamed, and for what.
BREACHES = [
    ("phase: queue", "phase: quue", "engine: queue_ms", "unknown phase `quue`"),
    ("unit: ms", "unit: min", "engine: queue_ms", "unit `min`"),
    ("unit: span", "unit: s", "engine: forward", "unit `s`"),
    ("from: put into the queue", "from: ' '", "engine: queue_ms", "an edge is empty"),
    ("phase: queue", "phase: none", "engine: queue_ms", "phase and reason do not go together"),
    ("phase: queue", "reason: why", "engine: queue_ms", "not one of phase, attribute and instant"),
    ("phase: queue", "phase: queue\n        reason: why", "engine: queue_ms", "phase and reason"),
    ("phase: queue", "phase: queue\n        instant: first_output", "engine: queue_ms", "not one"),
    ("phase: queue", "instant: last_output", "engine: queue_ms", "unknown instant"),
    ("phase: queue", "attribute: llmlat.queue", "engine: queue_ms", "unknown attribute"),
    ("phase: queue", "attribute: gen_ai.request.model", "engine: queue_ms", "unknown attribute"),
    ("phase: queue", "phase: queue\n        less: 1", "engine: queue_ms", "`less` of what is no"),
    ("phase: queue", "phase: queue\n        minus: wait_ms", "engine: queue_ms", "minus `wait_ms`"),
    (
        "phase: queue",
        "phase: queue\n        evidence: sure",
        "engine: queue_ms",
        "unknown evidence",
    ),
    ("surface: span_name", "surface: span", "engine: forward", "unknown surface `span`"),
    ("key: queue_ms", "key: queue_ms\n        edge: start", "engine: queue_ms", "without its edge"),
    ("        edge: start\n", "", "engine: evicted", "without its edge"),
    ("edge: start", "edge: end", "engine: evicted", "`until` of what is no start"),
    ("until: [forward]", "until: [prefill]", "engine: evicted", "until `prefill`"),
    ("versions: 1.0 to 1.2", "versions: 1.0 and 1.2", "engine", "no range of versions"),
    ("[https://example.com/engine trace.py (1.2)]", "[trace.py]", "engine", "no source"),
    ("name: engine\n", "name: Engine\n", "Engine", "not lower-case snake_case"),
    ("operations: [{ name: request }]", "operations: []", "engine", "which spans"),
    ("operations: [{ name: request }]", "operations: [{}]", "engine", "every span would be"),
    ("scopes: [{ scope: engine.tracer, resource: engine.name }]\n", "\n", "engine", "scopes and"),
]


@pytest.fixture
def written(contract: Path) -> Callable[[str], Path]:
    """Puts a text in the place of the aliases of a contract."""

    def write(text: str) -> Path:
        (contract / ALIASES).write_text(text, encoding="utf-8")
        return contract

    return write


Written = Callable[[str], Path]


@pytest.mark.parametrize("text", [SOUND, RESPONSE], ids=["spans", "response"])
def test_what_is_sound_is_not_blamed(written: Written, text: str) -> None:
    assert check.problems(written(text)) == []


@pytest.mark.parametrize(("old", "new", "name", "what"), BREACHES)
def test_a_breach_is_blamed_on_its_name(
    written: Written, old: str, new: str, name: str, what: str
) -> None:
    assert SOUND.count(old) == 1
    blamed = [one for one in check.problems(written(SOUND.replace(old, new))) if one.name == name]
    assert any(what in one.what for one in blamed), blamed


def test_one_key_stands_once_in_one_producer_and_in_as_many_producers_as_say_it(
    written: Written,
) -> None:
    first, second = (SOUND.index(f"      - surface: span_{kind}") for kind in ("attribute", "name"))
    alias = SOUND[first:second]
    twice = check.problems(written(SOUND + alias))
    assert [one.what for one in twice] == ["this alias of engine is there twice"]
    other = SOUND.partition("producers:\n")[2].replace("name: engine\n", "name: other\n")
    other = other.replace("engine.tracer", "other.tracer")
    assert check.problems(written(SOUND + other)) == []
    operation = alias.replace("key: queue_ms", "key: queue_ms\n        operation: decode")
    assert check.problems(written(SOUND + operation)) == []


def test_a_producer_stands_there_once(written: Written) -> None:
    whats = {one.what for one in check.problems(written(SOUND + SOUND.partition("\n")[2]))}
    assert "this producer is there twice" in whats


def test_a_header_is_written_in_lower_case(written: Written) -> None:
    (problem,) = check.problems(written(RESPONSE.replace("key: x-queue", "key: X-Queue")))
    assert problem.what == "a header that is not in lower case"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("producers:", "engines:", "not one list of `producers`"),
        ("    title: An engine\n", "", "engine: no `title`"),
        ("title: An engine", "title: An engine\n    site: x", "engine: unknown field `site`"),
        ("        unit: ms\n", "", "engine: queue_ms: no `unit`"),
        ("unit: ms", "unit: ms\n        units: ms", "engine: queue_ms: unknown field `units`"),
        ("unit: ms", "unit: 1", "engine: queue_ms: `unit` is 1"),
        ("scopes: [{ scope: engine.tracer, resource: engine.name }]", "scopes: x", "no list"),
        ("{ scope: engine.tracer, resource: engine.name }", "engine.tracer", "is no mapping"),
        ("operations: [{ name: request }]", "operations: [{ names: x }]", "unknown field `names`"),
        ("sources: [https://example.com/engine trace.py (1.2)]", "sources: x", "no list of text"),
    ],
)
def test_a_file_of_another_shape_cannot_be_read(
    written: Written, old: str, new: str, what: str
) -> None:
    root = written(SOUND.replace(old, new))
    with pytest.raises(UnreadableContractError, match=re.escape(ALIASES)) as raised:
        read_producers(root)
    assert what in str(raised.value)
    assert check.main(["--root", str(root), "--no-weaver"]) == 2


def test_what_is_generated_says_what_is_written() -> None:
    written = {producer.name: producer for producer in read_producers(check.SEMCONV)}
    assert [producer.name for producer in PRODUCERS] == [*written]
    for producer in PRODUCERS:
        said = written[producer.name]
        assert [(each.key, each.start, each.end) for each in producer.aliases] == [
            (each.key, each.start, each.end) for each in said.aliases
        ]
        assert [each.phase or "" for each in producer.aliases] == [
            each.phase.replace("none", "") for each in said.aliases
        ]


def test_units_are_in_nanoseconds_and_evidence_is_reported_where_nothing_is_said() -> None:
    prefill = next(alias for alias in VLLM.aliases if alias.phase is Phase.PREFILL)
    assert (prefill.unit_ns, prefill.evidence) == (1_000_000_000, Evidence.REPORTED)
    assert prefill in VLLM.on(Surface.SPAN_ATTRIBUTE)
    assert VLLM.on(Surface.RESPONSE_FIELD) == ()
