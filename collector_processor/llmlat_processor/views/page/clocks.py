"""What is known of the clocks, and how both sides of a call saw its first content, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.model import FirstContent, Interval, Span
from llmlat_processor.views.page.markup import (
    NOTHING,
    amount,
    count,
    exact_ends,
    name,
    named_span,
    text,
)
from llmlat_processor.views.wording import Clock, ClockMap

OPEN_CLOCKS: Final = 20
OPEN_FIRST_CONTENTS: Final = 20

_HEADINGS: Final = ("Offset from the root's clock", "Width", "Messages")


def draw_clocks(clocks: ClockMap, reference: str, left_out: int) -> Iterator[str]:
    """Each clock with its offset from the root's; nothing where there is only one."""
    if not clocks.clocks:
        return
    is_open = " open" if len(clocks.clocks) <= OPEN_CLOCKS else ""
    number = f"{len(clocks.clocks):,} of them"
    yield f'<details class="clocks" data-at="clocks"{is_open}><summary><h3>Clocks</h3> '
    yield f'<span class="quiet">{number}, each with how far it is ahead of (+) or behind (-)'
    yield " the root's, at its start</span>"
    yield f'</summary><span data-text="reference" hidden>{text(reference)}</span>'
    yield '<table><caption class="unseen">Offsets of clocks</caption><thead><tr>'
    yield '<th scope="col">Read by</th><th scope="col">Host</th>'
    yield "".join(f'<th scope="col" class="num">{heading}</th>' for heading in _HEADINGS)
    yield '<th scope="col">Findings</th></tr></thead><tbody>'
    for position, clock in enumerate(clocks.clocks):
        yield from _clock(position, clock)
    yield "</tbody></table>"
    beyond = f"nothing is said of {count(left_out, 'left_out')} clocks beyond these"
    yield f'<p class="quiet"{"" if left_out else " hidden"}>{beyond}</p></details>'


def _clock(position: int, clock: Clock) -> Iterator[str]:
    services = ", ".join(
        name(service, f"services.{at}") for at, service in enumerate(clock.services)
    )
    domain = clock.offset.domain
    yield f'<tr data-at="domains.{position}"><th scope="row">{services or NOTHING}</th>'
    yield f"<td>{_host(clock)}"
    yield f'<span data-text="domain" hidden>{text(domain)}</span></td>'
    yield f'<td class="num">{text(clock.where())}{_ends(clock)}</td>'
    width_ns = clock.width_ns
    yield f'<td class="num">{NOTHING if width_ns is None else amount(width_ns, "")}</td>'
    yield f'<td class="num">{count(clock.offset.messages, "messages")}</td>'
    found = ", ".join(f"<code>{kind.value}</code>" for kind in clock.found)
    yield f"<td>{found or NOTHING}</td></tr>"


def _host(clock: Clock) -> str:
    if clock.host:
        return name(clock.host)
    return f"in {name(clock.within)}" if clock.within else NOTHING


def _ends(clock: Clock) -> str:
    """Both offsets for programs; people read that of the wall clocks."""
    both: Mapping[str, Interval] = {
        "offset_ns": clock.offset.interval,
        "wall_offset_ns": clock.offset.wall,
    }
    return "".join(exact_ends(known, key) for key, known in both.items())


def draw_first_contents(
    seen: Sequence[FirstContent], addresses: Mapping[Span, str]
) -> Iterator[str]:
    """Of each call when its first content was there, as its callee and as its caller saw it."""
    if not seen:
        return
    is_open = " open" if len(seen) <= OPEN_FIRST_CONTENTS else ""
    yield f'<details class="first-contents"{is_open}><summary><h3>First content</h3> '
    yield '<span class="quiet">as both sides of a call saw it, each by its own clock</span>'
    yield '</summary><table><caption class="unseen">First contents</caption><thead><tr>'
    yield '<th scope="col">Call</th><th scope="col">Callee</th>'
    yield '<th scope="col" class="num">Seen by the callee</th>'
    yield '<th scope="col" class="num">Seen by the caller</th>'
    yield '<th scope="col" class="num">Both ways between them</th></tr></thead><tbody>'
    for position, one in enumerate(seen):
        yield f'<tr data-at="/first_contents.{position}"><th scope="row">'
        yield f"{_linked(one.call, 'call', addresses)}</th>"
        yield f"<td>{_linked(one.callee, 'callee', addresses)}</td>"
        for key in ("server_ns", "client_ns", "transit_ns"):
            yield f'<td class="num">{amount(getattr(one, key), key)}</td>'
        yield "</tr>"
    yield "</tbody></table></details>"


def _linked(span: Span, key: str, addresses: Mapping[Span, str]) -> str:
    identity = f'<span data-text="{key}" hidden>{span.span_id.hex()}</span>'
    return f"{named_span(span, addresses.get(span))}{identity}"
