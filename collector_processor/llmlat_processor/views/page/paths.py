"""Both paths as bars on one scale and as tables of sections, and what they consist of."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

from llmlat_processor.model import Path, RootPaths, Section, Span, Trace
from llmlat_processor.views.page.markup import (
    DIAMOND,
    DOT,
    across,
    amount,
    look,
    name,
    named_span,
    share,
    text,
)
from llmlat_processor.views.wording import ABSENCES, duration, percent
from llmlat_semconv.values import Evidence

SHOWN_LEADERS: Final = 4
DRAWN_SECTIONS: Final = 400
"""A bar has no room for more; the table has them all."""
WORTH_A_WORD: Final = 0.04
"""Of a bar: no window is so wide that a smaller part has room for its label."""
OPEN_SECTIONS: Final = 40
"""Of longer tables both are folded, so that what follows them is found."""
LISTED_SECTIONS: Final = 10_000
"""The longest of them: more would take a browser longer to read than the rest of the page."""

END: Final = f"{DOT} The path to the end"
CONTENT: Final = f"{DIAMOND} The path to the first useful content"


def draw_bars(paths: RootPaths, trace: Trace, addresses: Mapping[Span, str]) -> Iterator[str]:
    """Both paths on the scale of the longer one; instead of one that is absent, why it is."""
    named = {span.span_id: span for span in trace.operations}
    whole_ns = max(paths.e2e.duration_ns, paths.ttft.duration_ns if paths.ttft else 0)
    yield '<div class="bars">'
    yield from _bar(END, paths.e2e, whole_ns)
    yield from _alternatives("e2e", paths.e2e, named, addresses)
    if paths.ttft is not None:
        yield from _bar(CONTENT + _from(paths), paths.ttft, whole_ns)
        yield from _alternatives("ttft", paths.ttft, named, addresses)
    elif paths.ttft_absence is not None:
        reason = f'<span data-text="ttft_absence" hidden>{paths.ttft_absence.value}</span>'
        words = f"No path to a first useful content: {ABSENCES[paths.ttft_absence]}."
        yield f'<p class="quiet">{words}{reason}</p>'
    yield "</div>"


def draw_tables(paths: RootPaths, addresses: Mapping[Span, str]) -> Iterator[str]:
    """The sections of both paths in time order."""
    both = [(END, "e2e", paths.e2e)]
    if paths.ttft is not None:
        both.append((CONTENT + _from(paths), "ttft", paths.ttft))
    is_open = all(len(path.sections) <= OPEN_SECTIONS for _, _, path in both)
    yield '<div class="columns">'
    for goal, key, path in both:
        yield from _table(goal, key, path, addresses, is_open=is_open)
    yield "</div>"


def draw_services(path: Path) -> Iterator[str]:
    """What the path to the end consists of by service, each with its labels."""
    services: dict[str, dict[str, int]] = {}
    for label, service, size in path.largest():
        services.setdefault(service, {})[label.value] = size
    yield '<table class="services"><caption>By service, on the path to the end</caption>'
    yield '<thead><tr><th scope="col">Service</th><th scope="col" class="num">Time</th>'
    yield '<th scope="col" class="num">Share</th><th scope="col">Of it</th></tr></thead><tbody>'
    for service, labels in sorted(services.items(), key=lambda one: -sum(one[1].values())):
        size = sum(labels.values())
        yield f'<tr><th scope="row">{name(service)}</th><td class="num">{amount(size, "")}</td>'
        yield f'<td class="num">{share(size, path.duration_ns)}</td><td class="mixed">'
        yield from _mixed(labels, size)
        yield "</td></tr>"
    yield "</tbody></table>"


def _mixed(labels: Mapping[str, int], whole_ns: int) -> Iterator[str]:
    """A service's labels as one small bar, and in words."""
    said = ", ".join(f"{label} {duration(size)}" for label, size in labels.items())
    yield f'<span class="stack small" role="img" aria-label="{text(said)}">'
    for label, size in labels.items():
        yield f'<i class="{look(label)}" style="width:{across(size, whole_ns)}"></i>'
    yield "</span>"


def _from(paths: RootPaths) -> str:
    if paths.ttft is None or paths.ttft.root is paths.root:
        return ""
    return f", counted from {name(paths.ttft.root.name)}"


def _bar(goal: str, path: Path, whole_ns: int) -> Iterator[str]:
    length_ns = path.duration_ns
    yield f'<p class="goal">{goal}: <strong>{duration(length_ns)}</strong> '
    yield f'<span class="quiet">{_leaders(path)}</span></p>'
    yield f'<div class="stack" role="list" style="width:{across(length_ns, whole_ns)}">'
    for section, size in _drawn(path):
        yield _segment(section, size, length_ns)
    yield "</div>"


def _alternatives(
    key: str, path: Path, named: Mapping[bytes, Span], addresses: Mapping[Span, str]
) -> Iterator[str]:
    """Where the clocks allow another path, which one."""
    for number, one in enumerate(path.alternatives):
        ids = {"other": one.other, "entered": one.entered}
        yield f'<p class="ambiguous" data-at="{key}.alternatives.{number}">'
        yield '<b class="failed">ambiguous</b>: the clocks allow '
        yield " in place of ".join(_either(ids[which], named, addresses) for which in ids)
        for which, span_id in ids.items():
            yield f'<span data-text="{which}" hidden>{span_id.hex()}</span>'
        yield "</p>"


def _either(span_id: bytes, named: Mapping[bytes, Span], addresses: Mapping[Span, str]) -> str:
    if span_id not in named:
        return f"span <code>{span_id.hex()}</code>"
    span = named[span_id]
    return named_span(span, addresses.get(span))


def _segment(section: Section, size_ns: int, whole_ns: int) -> str:
    label, service = section.label.value, text(section.span.resource.service)
    said = f"{label} {service}, {duration(size_ns)}, {text(percent(size_ns, whole_ns))}"
    is_wide = size_ns >= whole_ns * WORTH_A_WORD
    kind = f"{look(label)} wide" if is_wide else look(label)
    word = f'<span aria-hidden="true">{label}</span>' if is_wide else ""
    return (
        f'<span role="listitem" class="{kind}" title="{said}" '
        f'style="width:{across(size_ns, whole_ns)}">{word}</span>'
    )


def _drawn(path: Path) -> Iterator[tuple[Section, int]]:
    """The sections; of very many, neighbours together under the longest of them."""
    together = -(-len(path.sections) // DRAWN_SECTIONS)
    for first in range(0, len(path.sections), together or 1):
        run = path.sections[first : first + together]
        longest = max(run, key=lambda section: section.duration_ns)
        yield longest, sum(section.duration_ns for section in run)


def _leaders(path: Path) -> str:
    """What dominated: `decode vllm 3.40 s (53 %)`, `queue vllm 920 ms (14 %)`, `...`."""
    leaders = path.largest()
    said = [
        f"{label.value} {name(service)} {duration(size)} ({share(size, path.duration_ns)})"
        for label, service, size in leaders[:SHOWN_LEADERS]
    ]
    return ", ".join([*said, "…"] if len(leaders) > SHOWN_LEADERS else said)


def _table(
    goal: str, key: str, path: Path, addresses: Mapping[Span, str], *, is_open: bool
) -> Iterator[str]:
    opened = " open" if is_open else ""
    count = len(path.sections)
    sections = f"{count:,} section{'s' if count != 1 else ''}"
    whole_ns = path.duration_ns
    total = amount(whole_ns, "duration_ns")
    yield f'<details class="sections" data-at="{key}"{opened}><summary><h3>{goal}: {total}</h3> '
    yield f'<span class="quiet">{sections}</span></summary>'
    root = f'<span data-text="root_span_id">{path.root.span_id.hex()}</span>'
    dominant = "" if path.dominant is None else path.dominant.value
    yield f'<div hidden>{root}<span data-text="dominant">{dominant}</span></div><table><thead><tr>'
    for heading in ("Start", "Duration", "Share"):
        yield f'<th scope="col" class="num">{heading}</th>'
    yield '<th scope="col">Section</th><th scope="col">Service</th><th scope="col">Known</th>'
    yield "</tr></thead><tbody>"
    origin_ns = path.sections[0].start_ns if path.sections else 0
    listed = _listed(path)
    left_out: list[int] = []
    for number, section in enumerate(path.sections):
        if number in listed:
            yield _line(number, section, origin_ns, whole_ns, addresses)
        else:
            left_out.append(section.duration_ns)
    yield "</tbody></table>"
    if left_out:
        words = f"not listed: {len(left_out):,} shorter sections, {duration(sum(left_out))} in all"
        yield f'<p class="quiet">{words}</p>'
    yield "</details>"


def _listed(path: Path) -> Container[int]:
    """Positions of the longest sections, the earlier ones of those that are as long."""
    sizes = [section.duration_ns for section in path.sections]
    if len(sizes) <= LISTED_SECTIONS:
        return range(len(sizes))
    return set(sorted(range(len(sizes)), key=lambda at: -sizes[at])[:LISTED_SECTIONS])


def _line(
    number: int, section: Section, origin_ns: int, whole_ns: int, addresses: Mapping[Span, str]
) -> str:
    evidence = section.evidence
    known = "" if evidence is Evidence.MEASURED else ' class="known"'
    part = share(section.duration_ns, whole_ns)
    is_seen = 100 * section.duration_ns >= whole_ns
    bar = (
        f' class="share" style="--share:{across(section.duration_ns, whole_ns)}"' if is_seen else ""
    )
    label = section.label.value
    return (
        f'<tr data-at="sections.{number}" data-span="{section.span.span_id.hex()}">'
        f"<td>{amount(section.start_ns - origin_ns, 'start_ns')}</td>"
        f"<td>{amount(section.duration_ns, 'duration_ns', evidence)}</td><td{bar}>{part}</td>"
        f'<td class="swatch {look(label)}" data-text="label">{label}</td>'
        f"<td>{_linked(section.span, addresses)}</td>"
        f'<td{known} data-text="evidence">{evidence.value}</td></tr>'
    )


def _linked(span: Span, addresses: Mapping[Span, str]) -> str:
    """The service, which leads to the operation's row."""
    service = span.resource.service
    if span not in addresses:
        return name(service, "service")
    where = f'href="#{addresses[span]}" title="{text(span.name)}"'
    return f'<a {where} dir="auto" data-text="service">{text(service)}</a>'
