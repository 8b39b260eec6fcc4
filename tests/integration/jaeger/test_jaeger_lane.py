"""The lane in a real Jaeger, held to the worked scenario as its case file states it."""

from __future__ import annotations

from itertools import accumulate

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import critical_path_duration_attribute
from llmlat_semconv.spans import section_span_name
from llmlat_semconv.values import SectionLabel
from tests.integration.jaeger.lanes import Lane, check_lane, is_ours, lane_of, originals, said
from tests.integration.jaeger.loop import Loop, running_loop
from tests.integration.jaeger.sending import TOOL, Sent, sent_as
from tests.integration.jaeger.storage import Json, Stored

pytestmark = pytest.mark.peers

SMALLEST_PART = 0.005
FIRST_CONTENT = "first useful content"
WARNINGS = "@jaeger@warnings"


@pytest.fixture(scope="module")
def sent() -> Sent:
    return sent_as("call_worked_adviser")


@pytest.fixture(scope="module")
def stored(shared_loop: Loop, sent: Sent) -> list[Stored]:
    shared_loop.send(sent.request)
    return shared_loop.stored(sent.trace_id)


@pytest.fixture(scope="module")
def lane(stored: list[Stored]) -> Lane:
    return lane_of(stored)


def test_it_has_the_form_of_a_lane(stored: list[Stored]) -> None:
    check_lane(stored)


def test_its_sections_are_those_of_the_case_that_can_be_seen(sent: Sent, lane: Lane) -> None:
    assert [_drawn(each) for each in lane.sections] == _expected(sent)


def _drawn(section: Stored) -> tuple[str, int, int, bytes]:
    span = section.span
    start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
    (link,) = span.links
    return span.name, start_ns, end_ns - start_ns, link.span_id


def _expected(sent: Sent) -> list[tuple[str, int, int, bytes]]:
    """Name, start, length and link: one after the other from the root's start on."""
    case, path = sent.case, sent.case.expected["e2e"]
    lengths = [case.duration_ns(each["amount"]) for each in path]
    starts = accumulate(lengths[:-1], initial=case.instant_ns(0))
    return [
        (_name(sent, each), start_ns, length_ns, _target(sent, each))
        for each, start_ns, length_ns in zip(path, starts, lengths, strict=True)
        if length_ns >= SMALLEST_PART * sum(lengths)
    ]


def _target(sent: Sent, section: Json) -> bytes:
    """The phase span that labels its time, where there is one, else its operation."""
    ids = sent.span_ids
    return ids.get(f"{section['of']}.{section['label']}", ids[section["of"]])


def _name(sent: Sent, section: Json) -> str:
    if section["label"] == SectionLabel.TOOL.value:
        return section_span_name("tool", TOOL)
    (service,) = {each["service"] for each in sent.case.spans if each["id"] == section["of"]}
    return section_span_name(section["label"], service)


def test_its_root_says_what_is_searched_and_what_is_not_drawn(sent: Sent, lane: Lane) -> None:
    about = said(lane.root.span.attributes)
    totals = sent.case.expected["totals"]
    assert about[names.LLMLAT_CRITICAL_PATH_DURATION] == 5.986
    assert about[names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE] == "decode"
    assert about[names.LLMLAT_CRITICAL_PATH_COMPLETE] is True
    assert about[names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS] == 13
    assert about[names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS] == 12
    assert about[names.LLMLAT_CRITICAL_PATH_HIDDEN_DURATION] == 0.025
    for label, amount in totals.items():
        assert about[critical_path_duration_attribute(SectionLabel(label))] == amount / 1000


def test_the_root_of_the_trace_says_the_same(stored: list[Stored], lane: Lane) -> None:
    (root,) = [each for each in originals(stored) if not each.span.parent_span_id]
    there, here = said(root.span.attributes), said(lane.root.span.attributes)
    for key in (
        names.LLMLAT_CRITICAL_PATH_DURATION,
        names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE,
        names.LLMLAT_CRITICAL_PATH_SUMMARY,
        names.LLMLAT_TTFT_PATH_DURATION,
    ):
        assert there[key] == here[key]


def test_the_first_useful_content_is_a_tick(sent: Sent, lane: Lane) -> None:
    (tick,) = lane.root.span.events
    assert tick.name == FIRST_CONTENT
    after_ns = tick.time_unix_nano - sent.case.instant_ns(0)
    assert after_ns == sent.case.duration_ns(sent.case.expected["ttft_total"])


def test_jaeger_has_no_warning_on_any_span(loop: Loop, sent: Sent, stored: list[Stored]) -> None:
    shown = loop.jaeger.shown(sent.trace_id)["spans"]
    assert len(shown) == len(stored)
    assert [each for each in shown if each["warnings"]] == []


def test_jaeger_has_no_warning_on_a_lane_beside_clocks_that_disagree(loop: Loop) -> None:
    sent = sent_as("call_negative_transit")
    loop.send(sent.request)
    ours = {each.span.span_id.hex() for each in loop.stored(sent.trace_id) if is_ours(each)}
    shown = {each["spanID"]: each["warnings"] for each in loop.jaeger.shown(sent.trace_id)["spans"]}
    assert ours
    assert [shown[each] for each in ours if shown[each]] == []
    assert not any(shown.values()), "findings are warnings only where that is asked for"


def test_findings_are_warnings_where_that_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sent = sent_as("call_negative_transit")
    with running_loop(tmp_path_factory.mktemp("warning"), "--jaeger-warnings") as loop:
        loop.send(sent.request)
        stored = loop.stored(sent.trace_id)
        shown = loop.jaeger.shown(sent.trace_id)["spans"]
    warned = {each["spanID"] for each in shown if each["warnings"]}
    engine = sent.span_ids["e"]
    assert engine.hex() in warned
    (kept,) = [each for each in originals(stored) if each.span.span_id == engine]
    assert isinstance(said(kept.span.attributes)[WARNINGS], list)
