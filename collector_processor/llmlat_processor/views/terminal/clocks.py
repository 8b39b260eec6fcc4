"""Writes what is known of the clocks, and how both sides of a call saw its first content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from llmlat_processor.model import FirstContent
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, fit, paragraph, printable
from llmlat_processor.views.wording import Clock, ClockMap

SHOWN_CLOCKS: Final = 12
SHOWN_FIRST_CONTENTS: Final = 12
SHOWN_SERVICES: Final = 3

ROOM_FOR_COLUMNS: Final = 70
"""On narrower lines what is said of a clock stands below its name."""


def draw_clocks(clocks: ClockMap, left_out: int, page: Page) -> Iterator[Text]:
    """Write each clock with its offset from the root's; nothing where there is only one."""
    if not clocks.clocks:
        return
    shown = clocks.clocks if page.everything else clocks.clocks[:SHOWN_CLOCKS]
    whose = [_whose(clock, page) for clock in shown]
    where = [clock.where(page.glyphs.micro) for clock in shown]
    yield Text("Clocks, and how far each is ahead of the root's", theme.HEADING)
    room = (min(max(map(cell_len, whose)), page.width // 3), max(map(len, where)))
    for clock, *said in zip(shown, whose, where, strict=True):
        yield from _clock(clock, said, room, page)
    if len(shown) < len(clocks.clocks):
        yield Text(f"  and {len(clocks.clocks) - len(shown):,} more", theme.QUIET)
    if left_out:
        yield Text(f"  nothing is said of {left_out:,} clocks beyond these", theme.QUIET)


def _clock(clock: Clock, said: Sequence[str], room: tuple[int, int], page: Page) -> Iterator[Text]:
    """`vllm (gpu-1)  +4.98 s .. +5.01 s   30.0 ms wide   4 messages   infeasible_offset`."""
    whose, where = said
    known = [*_width(clock, page), _count(clock.offset.messages)]
    found = f"{page.glyphs.warning} {', '.join(kind.value for kind in clock.found)}"
    if page.width < ROOM_FOR_COLUMNS:
        yield Text(paragraph([whose], page), theme.SERVICE)
        yield Text(paragraph([where, *known], page, page.glyphs.separator, indent=4))
        if clock.found:
            yield Text(paragraph(found.split(), page, indent=4), theme.WARNING)
        return
    line = Text("  ").append(fit(whose, room[0], page.glyphs), theme.SERVICE)
    line.append(f"  {where:<{room[1]}}")
    rest = f"  {page.glyphs.separator.join(known)}"
    if line.cell_len + len(rest) > page.width:
        line.rstrip()
        yield line
        line, rest = Text("    "), rest.lstrip()
    yield line.append(rest, theme.QUIET)
    if clock.found:
        yield Text(paragraph(found.split(), page, indent=4), theme.WARNING)


def _whose(clock: Clock, page: Page) -> str:
    services = [printable(one, page.glyphs) for one in clock.services[:SHOWN_SERVICES]]
    if len(clock.services) > SHOWN_SERVICES:
        services.append(f"{len(clock.services) - SHOWN_SERVICES:,} more")
    host = printable(clock.host, page.glyphs)
    return f"{', '.join(services)} ({host})" if host else ", ".join(services)


def _width(clock: Clock, page: Page) -> list[str]:
    width_ns = clock.width_ns
    return [] if width_ns is None else [f"{duration(width_ns, page.glyphs)} wide"]


def _count(messages: int) -> str:
    return f"{messages:,} message{'' if messages == 1 else 's'}"


def draw_first_contents(seen: Sequence[FirstContent], page: Page) -> Iterator[Text]:
    """Write of each call when its first content was there, as its callee and as its caller saw it.

    Both are durations, each by its own clock.
    """
    if not seen:
        return
    yield Text("First content, as both sides of a call saw it", theme.HEADING)
    shown = seen if page.everything else seen[:SHOWN_FIRST_CONTENTS]
    for one in shown:
        yield Text(paragraph(_first_content(one, page), page, page.glyphs.separator))
    if len(shown) < len(seen):
        yield Text(f"  and {len(seen) - len(shown):,} more", theme.QUIET)


def _first_content(seen: FirstContent, page: Page) -> list[str]:
    glyphs = page.glyphs
    callee, caller = (printable(span.resource.service, glyphs) for span in (seen.callee, seen.call))
    return [
        f"{printable(seen.call.name, glyphs)}: {callee} {duration(seen.server_ns, glyphs)}",
        f"{caller} {duration(seen.client_ns, glyphs)}",
        f"both ways between them {duration(seen.transit_ns, glyphs)}",
    ]
