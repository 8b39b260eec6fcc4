"""Puts the page together: head, list of traces, and for each root its figures and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from llmlat_processor.model import RootPaths, Span
from llmlat_processor.views.page.account import (
    draw_assumptions,
    draw_ledger,
    draw_spare,
)
from llmlat_processor.views.page.clocks import draw_clocks, draw_first_contents
from llmlat_processor.views.page.findings import draw_findings
from llmlat_processor.views.page.markup import NOTHING, Addresses, amount, name, share, text
from llmlat_processor.views.page.paths import draw_bars, draw_services, draw_tables
from llmlat_processor.views.page.phases import draw_answers, draw_phases
from llmlat_processor.views.page.told import Told
from llmlat_processor.views.page.waterfall import Waterfall
from llmlat_processor.views.wording import ClockMap, duration

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Nothing is ever fetched, whatever a span holds."""

SCRIPTS: Final = ("reschedule.js", "what_if.js", "tree.js", "page.js")
"""One script, in this order; the first one is a port of Python's."""


def page(traces: Sequence[Told]) -> str:
    """Draw finished traces on one HTML page that needs nothing else.

    Args:
        traces: in the order in which they are listed; the first one is open.
    """
    return "".join(_page(traces))


def _page(traces: Sequence[Told]) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta name="color-scheme" content="light dark"><title>{_title(traces)}</title>'
    yield f"<style>{_asset('page.css')}</style></head><body>"
    yield '<a class="skip" href="#traces">Skip to the trace</a>'
    yield f'<header class="top"><h1>{_heading(traces)}</h1>'
    yield '<button type="button" class="theme" hidden>Dark</button></header>'
    yield '<main id="traces">'
    if len(traces) > 1:
        yield from _list(traces)
    addresses = Addresses()
    for number, told in enumerate(traces):
        yield from _trace(told, number, addresses, is_one=len(traces) == 1)
    yield f"</main><script>{''.join(map(_asset, SCRIPTS))}</script></body></html>\n"


@cache
def _asset(file: str) -> str:
    return files("llmlat_processor.views.page").joinpath(file).read_text(encoding="utf-8")


def _title(traces: Sequence[Told]) -> str:
    roots = [paths.root for told in traces for paths in told.explained.paths.roots]
    if len(traces) == 1 and roots:
        return f"{text(roots[0].name)}, {duration(roots[0].duration_ns)}"
    return f"{len(traces):,} traces" if len(traces) != 1 else "One trace"


def _heading(traces: Sequence[Told]) -> str:
    if len(traces) == 1:
        return f"Trace <code>{traces[0].explained.trace.trace_id.hex()}</code>"
    return f"{len(traces):,} traces"


def _list(traces: Sequence[Told]) -> Iterator[str]:
    """One line a trace, which leads to it."""
    yield '<nav aria-label="Traces"><table class="list"><thead><tr><th scope="col">Root</th>'
    yield '<th scope="col">Service</th><th scope="col" class="num">Total</th>'
    yield '<th scope="col" class="num">First content</th><th scope="col">Most of it</th>'
    yield '<th scope="col">Findings</th></tr></thead><tbody>'
    for number, told in enumerate(traces):
        explained = told.explained
        found = f"{len(explained.findings):,}" if explained.findings else NOTHING
        if not explained.paths.roots:
            trace_id = explained.trace.trace_id.hex()
            yield f'<tr><td colspan="5"><a href="#trace-{number}">{trace_id}</a></td>'
            yield f"<td>{found}</td></tr>"
        for paths in explained.paths.roots:
            content = duration(paths.ttft.duration_ns) if paths.ttft is not None else NOTHING
            yield f'<tr><th scope="row"><a href="#trace-{number}">{name(paths.root.name)}</a></th>'
            yield f"<td>{name(paths.root.resource.service)}</td>"
            yield f'<td class="num">{duration(paths.root.duration_ns)}</td>'
            yield f'<td class="num">{content}</td><td>{_dominant(paths)}</td><td>{found}</td></tr>'
    yield "</tbody></table></nav>"


def _trace(told: Told, number: int, addresses: Addresses, *, is_one: bool) -> Iterator[str]:
    explained = told.explained
    trace_id = explained.trace.trace_id.hex()
    at = f'id="trace-{number}" data-at="/"'
    if is_one:
        yield f'<article class="trace" {at}>'
    else:
        is_open = " open" if number == 0 else ""
        roots = [paths.root for paths in explained.paths.roots]
        title = ", ".join(f"{name(root.name)} {duration(root.duration_ns)}" for root in roots)
        yield f'<details class="trace" {at}{is_open}><summary>{title} <code>{trace_id}</code>'
        yield "</summary>"
    yield f'<span data-text="trace_id" hidden>{trace_id}</span>'
    linked: dict[Span, str] = {}
    for at_root, paths in enumerate(explained.paths.roots):
        yield f'<section class="root" data-at="roots.{at_root}">'
        waterfall = Waterfall(explained, paths, f"roots.{at_root}", addresses)
        linked.update(waterfall.addresses)
        yield from _root(told, paths, f"{number}-{at_root}", waterfall)
        yield "</section>"
    if not explained.paths.roots:
        yield '<p class="failed">No operation of this trace can be placed.</p>'
    known, clocks = explained.aligned.clocks, ClockMap(explained)
    yield '<div class="apart">'
    yield from draw_first_contents(explained.paths.first_contents, linked)
    yield from draw_clocks(clocks, known.reference, known.left_out)
    yield "</div>"
    yield from draw_findings(explained, clocks, linked, f"findings-{number}")
    yield from draw_assumptions(explained.trace.assumptions)
    yield "</article>" if is_one else "</details>"


def _root(told: Told, paths: RootPaths, number: str, waterfall: Waterfall) -> Iterator[str]:
    yield from _figures(told, paths, number.partition("-")[0])
    yield from draw_bars(paths, told.explained.trace, waterfall.addresses)
    yield from waterfall.draw()
    yield '<div class="columns uneven">'
    yield from draw_phases(paths, told.schedules.get(paths.root), told.preset, number)
    yield '<div class="beside">'
    yield from draw_services(paths.e2e)
    yield from draw_ledger(paths)
    yield from draw_spare(paths, told.explained.trace, waterfall.addresses)
    yield "</div></div>"
    yield from draw_answers(told.answers.get(paths.root, ()))
    yield from draw_tables(paths, waterfall.addresses)


def _figures(told: Told, paths: RootPaths, number: str) -> Iterator[str]:
    root, explained = paths.root, told.explained
    yield f'<header class="title"><h2>{name(root.name, "name")}</h2>'
    yield f'<span class="service">{name(root.resource.service, "service")}</span>'
    yield f'<span data-text="span_id" hidden>{root.span_id.hex()}</span>'
    if explained.trace.complete:
        yield '<span class="quiet">complete</span>'
    else:
        yield '<span class="failed">incomplete: a parent is missing</span>'
    if explained.findings:
        count = len(explained.findings)
        words = f"{count:,} finding{'s' if count > 1 else ''}"
        yield f'<a class="failed" href="#findings-{number}">▲ {words}</a>'
    yield '</header><dl class="figures"><div><dt>Total</dt>'
    yield f"<dd>{amount(root.duration_ns, 'duration_ns')}</dd></div>"
    if paths.ttft is not None:
        said = amount(paths.ttft.duration_ns, "")
        yield f"<div><dt>First useful content</dt><dd>{said}</dd></div>"
    yield f"<div><dt>Most of it</dt><dd>{_dominant(paths)}</dd></div></dl>"


def _dominant(paths: RootPaths) -> str:
    label = paths.e2e.dominant
    if label is None:
        return NOTHING
    size = paths.e2e.totals_ns[label]
    return f"{label.value} {duration(size)} ({share(size, paths.e2e.duration_ns)})"
