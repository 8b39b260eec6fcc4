"""Holds the processor to what other producers send: `producers/*.json`, each with its source."""

from __future__ import annotations

import pytest

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.wire.skeletons import skeleton_of
from llmlat_semconv.aliases import PRODUCERS, Surface
from tests.cases.case_format import EXACT
from tests.cases.producer_cases import EXPECTED, KEYS, ProducerCase, found, producer_cases, said

CASES = producer_cases()
_OF_SPANS = {Surface.SPAN_ATTRIBUTE, Surface.SPAN_NAME, Surface.SPAN_EVENT}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_a_producer_sends_means_what_its_source_says(case: ProducerCase) -> None:
    explained = case.explained()
    (root,) = explained.paths.roots
    expected = case.expected
    assert expected.keys() <= EXPECTED
    assert expected.keys() & {"e2e", "absent"}, "a case that claims nothing"
    if "e2e" in expected:
        assert found(root.e2e) == said(expected["e2e"])
        stated = [each.get("evidence") for each in expected["e2e"]]
        evidence = [each.evidence.value for each in root.e2e.sections]
        assert [one for one, two in zip(evidence, stated, strict=True) if two] == [
            two for two in stated if two
        ]
    if "ttft" in expected:
        assert found(root.ttft) == said(expected["ttft"])
    assert sum(each.duration_ns for each in root.e2e.sections) == root.root.duration_ns
    labels = {each.label.value for each in root.e2e.sections}
    assert labels.isdisjoint(expected.get("absent", ()))
    _check_the_rest(case, explained)


def _check_the_rest(case: ProducerCase, explained: ExplainedTrace) -> None:
    expected = case.expected
    kinds = sorted(each.kind.value for each in explained.findings)
    kinds = [kind for kind in kinds if kind != "apparent_negative_network"]
    assert kinds == sorted(expected.get("findings", kinds))
    assert dict(explained.paths.unread) == expected.get("unread", dict(explained.paths.unread))
    names = [span.name for span in explained.trace.operations]
    assert names == expected.get("operations", names)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_kept_of_spans_that_went_before_says_the_same(case: ProducerCase) -> None:
    skeletons = [skeleton_of(span) for span in case.spans()]
    whole, kept = case.explained(), process(skeletons, EXACT)
    for one, other in zip(whole.paths.roots, kept.paths.roots, strict=True):
        assert found(one.e2e) == found(other.e2e)
        assert found(one.ttft) == found(other.ttft)
    assert whole.paths.unread == kept.paths.unread


def test_every_case_names_its_producer_and_its_source() -> None:
    for case in CASES:
        assert case.file.keys() == KEYS, case.name
        assert "://" in case.file["source"], case.name


def test_every_producer_with_spans_has_a_case_and_a_look_alike() -> None:
    cased = {case.file["producer"] for case in CASES}
    alike = {case.file["producer"] for case in CASES if case.file["look_alikes"]}
    with_spans = {
        each.name for each in PRODUCERS if _OF_SPANS & {alias.surface for alias in each.aliases}
    }
    assert with_spans - cased == set()
    assert with_spans - alike == set()
