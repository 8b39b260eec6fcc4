"""What stands beside the paths: the ledger, spare time, findings, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.model import Assumptions, Finding, RootPaths, Span, Trace
from llmlat_processor.views.page.markup import amount, name
from llmlat_processor.views.wording import PLAIN_WORDS, spare, spared

OPEN_SPARE: Final = 5
OPEN_FINDINGS: Final = 12

_LEDGER: Final = {
    "work_ns": ("work", "the leaves' durations, added up"),
    "busy_ns": ("busy", "while at least one of them ran"),
    "overlapped_ns": ("overlapped", "work that ran while other work ran"),
}


def draw_ledger(paths: RootPaths) -> Iterator[str]:
    """Work, busy and overlapped time, and retry waste where attempts are visible."""
    yield '<section class="ledger" data-at="ledger"><h3>Ledger</h3><dl>'
    for key, (word, meaning) in _LEDGER.items():
        size = amount(getattr(paths.ledger, key), key)
        yield f'<div><dt>{word}</dt><dd>{size}</dd><dd class="quiet">{meaning}</dd></div>'
    waste_ns = paths.ledger.retry_waste_ns
    if waste_ns is not None:
        size = amount(waste_ns, "retry_waste_ns")
        meaning = "failed attempts on the path"
        yield f'<div><dt>retry waste</dt><dd>{size}</dd><dd class="quiet">{meaning}</dd></div>'
    yield "</dl></section>"


def draw_spare(paths: RootPaths, trace: Trace, addresses: Mapping[Span, str]) -> Iterator[str]:
    """Operations off the path to the end, the longest first, and how much longer they may be."""
    off = spared(paths, trace)
    if not off:
        return
    yield '<section class="spare"><h3>Off the path to the end</h3><ul>'
    for span in off[:OPEN_SPARE]:
        yield _spare(span, paths.slacks_ns[span], addresses)
    yield "</ul>"
    if len(off) > OPEN_SPARE:
        yield f"<details><summary>{len(off) - OPEN_SPARE:,} more</summary><ul>"
        for span in off[OPEN_SPARE:]:
            yield _spare(span, paths.slacks_ns[span], addresses)
        yield "</ul></details>"
    yield "</section>"


def draw_findings(
    findings: Sequence[Finding], trace: Trace, addresses: Mapping[Span, str], where: str
) -> Iterator[str]:
    """Each finding in plain words, with the spans that it is about."""
    if not findings:
        return
    named = {span.span_id: span for span in trace.spans}
    linked = {span.span_id: address for span, address in addresses.items()}
    yield f'<section class="findings" id="{where}"><h3>Findings</h3><ul>'
    for number, finding in enumerate(findings):
        if number == OPEN_FINDINGS:
            more = len(findings) - OPEN_FINDINGS
            yield f"</ul><details><summary>{more:,} more</summary><ul>"
        yield _finding(number, finding, named.get(finding.of), linked)
    yield f"</ul>{'</details>' if len(findings) > OPEN_FINDINGS else ''}</section>"


def draw_assumptions(used: Assumptions) -> Iterator[str]:
    """What the result takes for granted."""
    stamps = "the resolution of stamps is found per clock"
    if used.resolution_ns is not None:
        stamps = f"stamps are exact to {amount(used.resolution_ns, 'resolution_ns')}"
    tail = amount(used.tail_ns, "tail_ns")
    yield '<p class="quiet assumed" data-at="assumptions">Assumed: a server may go on for '
    yield f"{tail} after its last output; {stamps}.</p>"


def _spare(span: Span, slack_ns: int, addresses: Mapping[Span, str]) -> str:
    return f"<li>{_named(span, addresses.get(span))}, {spare(span, slack_ns)}</li>"


def _named(span: Span, address: str | None) -> str:
    shown = name(span.name)
    linked = shown if address is None else f'<a href="#{address}">{shown}</a>'
    return f'{linked} <span class="service">{name(span.resource.service)}</span>'


def _finding(number: int, finding: Finding, about: Span | None, linked: Mapping[bytes, str]) -> str:
    parts = [f'<li data-at="findings.{number}"><p><b aria-hidden="true">▲</b> ']
    parts.append(f'<code data-text="kind">{finding.kind.value}</code> ')
    if finding.amount_ns is not None:
        parts.append(f"<strong>{amount(finding.amount_ns, 'amount_ns')}</strong> ")
    if about is not None:
        parts.append(_named(about, linked.get(finding.of)))
    else:
        parts.append(f"span <code>{finding.of.hex()}</code>")
    parts.append(f"</p><p>{PLAIN_WORDS[finding.kind]}")
    if finding.epsilon_ns is not None:
        parts.append(f"; {amount(finding.epsilon_ns, 'epsilon_ns')} were granted")
    if finding.note:
        parts.append(f"; {name(finding.note, 'note')}")
    witnesses = [_witness(at, witness, linked) for at, witness in enumerate(finding.witnesses)]
    if witnesses:
        parts.append(f'. <span class="quiet">Seen on {", ".join(witnesses)}</span>')
    parts.append(f'</p><span data-text="of" hidden>{finding.of.hex()}</span></li>')
    return "".join(parts)


def _witness(at: int, span_id: bytes, linked: Mapping[bytes, str]) -> str:
    identity = f'<code data-text="witnesses.{at}">{span_id.hex()}</code>'
    if span_id not in linked:
        return identity
    return f'<a href="#{linked[span_id]}">{identity}</a>'
