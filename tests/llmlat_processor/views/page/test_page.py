"""The page as text: nothing of a span becomes markup, nothing is fetched, everything closes."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given

from llmlat_processor.commands.page import told
from llmlat_processor.commands.what_if import parse
from llmlat_processor.model import ExplainedTrace, Resource, Span
from llmlat_processor.pipeline import process
from llmlat_processor.schedule import Operation, Schedule
from llmlat_processor.views.page import page, paths
from llmlat_processor.views.page.markup import LOOKS
from llmlat_processor.views.page.phases import schedule_json
from llmlat_processor.views.wording import duration
from llmlat_semconv.attributes import LLMLAT_CRITICAL_PATH_DOMINANT_PHASE
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import SectionLabel
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import adviser_spans, span
from tests.llmlat_processor.views.page.read_back import read_page, tags_of
from tests.properties.traces import damaged_traces

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' style='position:fixed",
    "<!--",
    "]]>&lt;",
    "\u202egnirts desrever",
    "\x00\x1b[2J\ud800\u2028",
)


def drawn(*traces: ExplainedTrace) -> str:
    return page([told(explained) for explained in traces])


def hostile_trace() -> ExplainedTrace:
    spans = [
        Span(
            one.trace_id,
            one.span_id,
            one.parent_id,
            HOSTILE[at % len(HOSTILE)] if not one.attributes else one.name,
            one.kind,
            one.start_ns,
            one.end_ns,
            Resource(
                {},
                service=HOSTILE[at % (len(HOSTILE) - 1)],
                process=one.resource.process,
                domain=HOSTILE[at % 2] + one.resource.domain,
                weak=False,
            ),
            attributes=one.attributes,
        )
        for at, one in enumerate([*adviser_spans(), *hostile_leaves()])
    ]
    return process(spans)


def hostile_leaves() -> list[Span]:
    return [span(100 + at, 1, "leaf", 100 * at, 100 * at + 50) for at in range(len(HOSTILE))]


def test_hostile_names_are_text_and_nothing_else() -> None:
    plain, hostile = drawn(process([*adviser_spans(), *hostile_leaves()])), drawn(hostile_trace())
    assert set(tags_of(hostile)) <= set(tags_of(plain)) | {"section", "ul", "li", "a"}
    assert "img" not in tags_of(hostile)
    assert "onerror=alert(1)" in hostile
    assert "<img" not in hostile
    for char in "\x00\x1b\u202e\u2028\ud800":
        assert char not in hostile
    hostile.encode("utf-8")


@given(damaged_traces())
def test_any_trace_is_a_page_whose_elements_close(case: Case) -> None:
    explained = process(spans_of(case))
    assert read_page(drawn(explained))["trace_id"] == {explained.trace.trace_id.hex()}


def test_nothing_is_fetched_and_the_policy_forbids_it() -> None:
    html = drawn(process(adviser_spans()))
    assert not {"link", "img", "iframe", "object", "video", "audio"} & set(tags_of(html))
    assert not re.search(
        r"(?:src|action|@import|url\()\s*[=(]?\s*[\"']?\s*(?:https?:|//|data:)", html
    )
    assert "default-src 'none'" in html


def test_every_id_is_there_once_though_spans_share_one() -> None:
    one = process(adviser_spans())
    ids = re.findall(r' id="([^"]+)"', drawn(one, one))
    assert len(ids) == len(set(ids))
    assert {"span-0000000000000001", "span-0000000000000001-2"} <= set(ids)


def test_every_reference_has_its_target() -> None:
    html = drawn(process(adviser_spans()), process(adviser_spans()[:3]))
    ids = set(re.findall(r' id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= ids
    assert set(re.findall(r'aria-describedby="([^"]+)"', html)) <= ids


def test_several_traces_are_listed_and_the_first_is_open() -> None:
    html = drawn(process(adviser_spans()), process([span(1, 0, "second", 0, 5)]))
    assert html.count('<details class="trace"') == 2
    assert html.count('data-at="/" open') == 1
    assert 'href="#trace-1"' in html


def test_a_trace_without_a_root_says_so() -> None:
    html = drawn(process([span(1, 0, "backwards", 5, 0)]))
    assert "No operation of this trace can be placed." in html
    assert "negative_duration" in html


@pytest.mark.parametrize("asked", ["queue=0.5", "tool:get_orders=0.5 queue=0.5", "decode=2"])
def test_a_what_if_of_the_command_line_stands_in_its_control(asked: str) -> None:
    suppositions = [parse(text) for text in asked.split()]
    html = page([told(process(adviser_spans()), suppositions=suppositions)])
    label, _, factor = asked.rsplit(maxsplit=1)[-1].partition("=")
    moved = re.findall(r'value="(\d+)" data-label="(\w+)"', html)
    assert [pair for pair in moved if pair[0] != "100"] == [
        (str(round(float(factor) * 100)), label)
    ]


@pytest.mark.parametrize("asked", ["queue=0.505", "queue=3", "queue=-5ms", "queue@10=0.5"])
def test_what_no_control_can_say_moves_none(asked: str) -> None:
    html = page([told(process(adviser_spans()), suppositions=[parse(asked)])])
    assert {value for value, _ in re.findall(r'value="(\d+)" data-label="(\w+)"', html)} == {"100"}


def test_a_path_without_phases_has_no_controls() -> None:
    html = drawn(process([span(1, 0, "alone", 0, 5)]))
    assert "What if it took" not in html
    assert 'type="application/json"' not in html


def test_a_link_from_elsewhere_finds_the_line_of_a_phase() -> None:
    links = Path("examples/jaeger/jaeger-ui.json").read_text(encoding="utf-8")
    assert f"#p-0-0-#{{{LLMLAT_CRITICAL_PATH_DOMINANT_PHASE}}}" in links
    explained = process(adviser_spans())
    for label in explained.paths.roots[0].e2e.totals_ns:
        assert f' id="p-0-0-{label.value}"' in drawn(explained)


# ── Very much of everything ──────────────────────────────────────────────────────────────────────


def test_an_endless_name_is_cut_wherever_it_stands() -> None:
    endless = Resource({}, service="s" * 100_000, process="p", domain="d" * 100_000, weak=False)
    spans = [span(at, int(at > 1), "n" * 100_000, 0, 50 - at, endless) for at in range(1, 20)]
    html = drawn(process(spans))
    assert len(html) < 300_000
    assert f"{'n' * 1_000}…<" in html


def test_rows_stand_in_groups_of_fifty() -> None:
    html = drawn(process([span(at, int(at > 1), "step", 0, 500 - at) for at in range(1, 402)]))
    sizes = [group.count('role="row"') for group in html.split('role="rowgroup"')[1:]]
    said = [int(size) for size in re.findall(r'"--rows:(\d+)"', html)]
    assert sizes == said
    assert max(sizes) == 50
    assert sum(sizes) == html.count(' aria-level="')


def test_gaps_that_no_eye_can_see_are_not_drawn() -> None:
    steps = [span(at, 1, "step", 10 * at, 10 * at + 9) for at in range(2, 6_002)]
    html = drawn(process([span(1, 0, "root", 0, 60_020), *steps]))
    root = html.partition('class="row op')[2].partition('class="row op')[0]
    assert 0 < root.count('class="bar') < 10
    one = html.partition(">step<")[2].partition('class="row')[0]
    assert one.count('class="bar') == 1


def test_of_very_many_sections_the_longest_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LISTED_SECTIONS", 3)
    explained = process(adviser_spans())
    sections = explained.paths.roots[0].e2e.sections
    html = drawn(explained)
    listed = html.partition('data-at="e2e"')[2].partition("</details>")[0]
    kept = [int(at) for at in re.findall(r'data-at="sections\.(\d+)"', listed)]
    longest = sorted(section.duration_ns for section in sections)[-3:]
    assert sorted(sections[at].duration_ns for at in kept) == longest
    rest = sum(section.duration_ns for section in sections) - sum(longest)
    assert f"not listed: {len(sections) - 3} shorter sections, {duration(rest)} in all" in listed


def test_numbers_that_a_script_would_round_are_written_as_strings() -> None:
    large = 2**60 + 1
    one = Operation(b"a", 0, large, large, 0, 0, (), (), (), -1, {"queue": ((0, large),)})
    assert schedule_json(Schedule((one,))).count(f'"{large}"') == 3


def test_every_label_has_a_look_with_a_colour() -> None:
    html = drawn(process(adviser_spans()))
    assert {*LOOKS} == {label.value for label in (*Phase, *SectionLabel)}
    for look in set(LOOKS.values()):
        assert f".is-{look} {{ --look: var(--{look});" in html


# ── Contrast ─────────────────────────────────────────────────────────────────────────────────────

GROUNDS = ("ground", "panel", "hover", "grid")
TEXTS = ("ink", "quiet", "link", "service", "warn", "mark")
FILLS = (*dict.fromkeys(LOOKS.values()), "prefill")


def colours(html: str) -> dict[str, tuple[str, str]]:
    """Light and dark of every variable."""
    found = re.findall(r"--([\w-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);", html)
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


PAIRS = [
    *((text, ground) for text in TEXTS for ground in GROUNDS),
    *(("on", fill) for fill in FILLS),
]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS, ids="-on-".join)
def test_text_can_be_read(text: str, ground: str, mode: int) -> None:
    found = colours(drawn(process(adviser_spans())))
    assert contrast(found[text][mode], found[ground][mode]) >= 4.5


def test_contrast_is_what_the_guideline_says() -> None:
    assert contrast("000000", "ffffff") == 21
    assert Fraction(round(contrast("767676", "ffffff") * 100), 100) == Fraction("4.54")


def test_findings_that_clocks_explain_come_last_and_keep_their_numbers() -> None:
    explained = clocked.adviser(clocked.apparent(), clocked.contradiction())
    drawn = page([told(explained)])
    assert drawn.index('data-at="findings.1"') < drawn.index('data-at="findings.0"')


def test_a_finding_names_its_spans_and_its_proof_does_so_once() -> None:
    explained = clocked.adviser(clocked.apparent(), clocked.contradiction())
    drawn = page([told(explained)])
    seen = [part.partition("</p>")[0] for part in drawn.split('<span class="quiet"')[1:]]
    shown, hidden = (
        [part for part in seen if part.startswith(f"{mark}>Seen on")] for mark in ("", " hidden")
    )
    assert (len(shown), len(hidden)) == (1, 1)
    assert "engine chat" in shown[0]


def test_every_table_about_clocks_has_a_caption() -> None:
    explained = clocked.adviser(clocked.contradiction())
    drawn = page([told(explained)])
    for caption in ("Offsets of clocks", "First contents", "Messages of the proof"):
        assert f'<caption class="unseen">{caption}</caption>' in drawn
