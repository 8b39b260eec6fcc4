"""Findings in plain words, with the spans that they are about and the messages that prove them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.model import ExplainedTrace, Finding, Span
from llmlat_processor.views.page.markup import amount, exact, exact_ends, name, named_span, text
from llmlat_processor.views.wording import ClockMap, Limit, by_weight, meaning, size

OPEN_FINDINGS: Final = 12

_PROVED: Final = ("left_ns", "arrived_ns", "epsilon_ns", "tail_ns", "drift_ns")


def draw_findings(
    explained: ExplainedTrace, clocks: ClockMap, addresses: Mapping[Span, str], where: str
) -> Iterator[str]:
    """Each finding of a trace, the first ones open."""
    findings = explained.findings
    if not findings:
        return
    drawing = _Findings(explained, clocks, addresses)
    yield f'<section class="findings" id="{where}"><h3>Findings</h3><ul>'
    for position, (number, finding) in enumerate(by_weight(findings)):
        if position == OPEN_FINDINGS:
            more = len(findings) - OPEN_FINDINGS
            yield f"</ul><details><summary>{more:,} more</summary><ul>"
        yield from drawing.draw(number, finding)
    yield f"</ul>{'</details>' if len(findings) > OPEN_FINDINGS else ''}</section>"


class _Findings:
    """The findings of one trace, with what their ids stand for."""

    def __init__(
        self, explained: ExplainedTrace, clocks: ClockMap, addresses: Mapping[Span, str]
    ) -> None:
        self._clocks = clocks
        self._named = {span.span_id: span for span in explained.trace.spans}
        self._linked = {span.span_id: address for span, address in addresses.items()}

    def draw(self, number: int, finding: Finding) -> Iterator[str]:
        """What was found where on one line, what it means and what proves it below."""
        yield f'<li data-at="findings.{number}"><p><b aria-hidden="true">▲</b> '
        yield f'<code data-text="kind">{finding.kind.value}</code> '
        if finding.amount_ns is not None:
            shown = f'value="{finding.amount_ns}" data-is="amount_ns">{size(finding)}'
            yield f"<strong><data {shown}</data></strong> "
        yield f"{self._span(finding.of)}</p><p>{text(meaning(finding))}"
        if finding.epsilon_ns is not None:
            yield f"; {amount(finding.epsilon_ns, 'epsilon_ns')} were granted"
        if finding.note:
            yield f"; {name(finding.note, 'note')}"
        seen_on = [self._witness(at, one) for at, one in enumerate(finding.witnesses)]
        if seen_on:
            hidden = " hidden" if finding.proof else ""  # the proof names them
            yield f'. <span class="quiet"{hidden}>Seen on {", ".join(seen_on)}</span>'
        yield f'</p><span data-text="of" hidden>{finding.of.hex()}</span>'
        if finding.interval is not None:
            yield exact_ends(finding.interval, "interval_ns")
        yield from self._proof(finding)
        yield "</li>"

    def _span(self, span_id: bytes) -> str:
        if span_id not in self._named:
            return f"span <code>{span_id.hex()}</code>"
        return named_span(self._named[span_id], self._linked.get(span_id))

    def _witness(self, at: int, span_id: bytes) -> str:
        """A span by its name, which says more than its id."""
        key = f'data-text="witnesses.{at}"'
        if span_id not in self._named:
            return f"span <code {key}>{span_id.hex()}</code>"
        return f"{self._span(span_id)}<span {key} hidden>{span_id.hex()}</span>"

    def _proof(self, finding: Finding) -> Iterator[str]:
        """The certificate: each message in words and in exact numbers, and what they come to."""
        if not finding.proof:
            return
        limits = self._clocks.limits(finding)
        yield f'<ol class="proof">{"".join(map(self._words, limits))}</ol>'
        together = self._clocks.together(finding)
        yield f"<p>{text(together[:1].upper() + together[1:])}.</p>"
        yield "<details><summary>In numbers, in ns</summary><table>"
        yield '<caption class="unseen">Messages of the proof</caption><thead><tr>'
        for heading in ("Clock", "To", "Left", "Arrived", "Resolution", "Tail", "Drift"):
            yield f'<th scope="col">{heading}</th>'
        yield "</tr></thead><tbody>"
        for at, limit in enumerate(limits):
            yield _numbers(at, limit)
        yield "</tbody></table></details>"

    def _words(self, limit: Limit) -> str:
        left, arrived = self._span(limit.message.left), self._span(limit.message.arrived)
        of, than = name(limit.of, kind="service"), name(limit.than, kind="service")
        bound = f"{of} is <strong>{text(limit.bound)}</strong> {than}"
        return f"<li>from {left} to {arrived}: {bound}</li>"


def _numbers(at: int, limit: Limit) -> str:
    message = limit.message
    cells = "".join(f'<td class="num">{exact(getattr(message, key), key)}</td>' for key in _PROVED)
    ids: Sequence[str] = [
        f'<span data-text="{key}" hidden>{span_id.hex()}</span>'
        for key, span_id in (("left", message.left), ("arrived", message.arrived))
    ]
    return (
        f'<tr data-at="proof.{at}"><td>{name(message.sender, "sender")}{"".join(ids)}</td>'
        f"<td>{name(message.receiver, 'receiver')}</td>{cells}</tr>"
    )
