"""Glyphs, colours and plain formatting of the terminal view; every colour repeats a glyph."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size

from llmlat_processor.model import Span
from llmlat_processor.views import wording
from llmlat_semconv.phases import FACTS, Phase
from llmlat_semconv.values import PhaseClass, SectionLabel


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What the view draws with; of one cell each, up to `warning`."""

    e2e: str
    ttft: str
    tick: str
    rule: str
    e2e_cell: str
    ttft_cell: str
    off_cell: str
    before: str
    beyond: str
    branch: str
    last_branch: str
    trunk: str
    cut: str
    warning: str
    at_most: str
    micro: str
    separator: str


UNICODE: Final = Glyphs(
    e2e="●",
    ttft="◆",
    tick="▼",
    rule="┊",
    e2e_cell="█",
    ttft_cell="▓",
    off_cell="░",
    before="«",
    beyond="»",
    branch="├",
    last_branch="└",
    trunk="│",
    cut="…",
    warning="▲",
    at_most="≤ ",
    micro=wording.MICRO,
    separator=" · ",
)

ASCII: Final = Glyphs(
    e2e="E",
    ttft="T",
    tick="v",
    rule=":",
    e2e_cell="#",
    ttft_cell="=",
    off_cell="-",
    before="<",
    beyond=">",
    branch="|",
    last_branch="`",
    trunk="|",
    cut="~",
    warning="!",
    at_most="<= ",
    micro="us",
    separator=" | ",
)


@dataclass(frozen=True, slots=True)
class Page:
    """What is drawn on: its width in cells, its glyphs, and whether nothing is left out."""

    width: int
    glyphs: Glyphs
    everything: bool


E2E_STYLE: Final = "bold"
TTFT_STYLE: Final = "bold cyan"
TICK_STYLE: Final = "cyan"
OFF_STYLE: Final = "bright_black"
SERVICE: Final = "blue"
QUIET: Final = "bright_black"
HEADING: Final = "bold"
WARNING: Final = "yellow"

LONGEST_NAME: Final = 40
"""Cells of a name within a sentence."""

# Holds the words of a part together while lines are filled; never printed.
_GLUE: Final = "\x00"

_CLASS_STYLES: Final = {
    PhaseClass.COMPUTE: "green",
    PhaseClass.QUEUEING: "red",
    PhaseClass.NETWORK: "blue",
    PhaseClass.TRANSFER: "blue",
    PhaseClass.OVERHEAD: "magenta",
    PhaseClass.IDLE: "yellow",
    PhaseClass.REMOTE: "cyan",
}

_DERIVED_STYLES: Final = {
    SectionLabel.TRANSIT: _CLASS_STYLES[PhaseClass.NETWORK],
    SectionLabel.HELD: _CLASS_STYLES[PhaseClass.QUEUEING],
    SectionLabel.WORK: _CLASS_STYLES[PhaseClass.COMPUTE],
    SectionLabel.UNOBSERVED: "white",
}

LABEL_STYLES: Final[dict[str, str]] = {
    **{phase.value: _CLASS_STYLES[FACTS[phase].phase_class] for phase in Phase},
    **{label.value: style for label, style in _DERIVED_STYLES.items()},
}
"""A label's colour is that of its class: compute, queueing, network, overhead, idle, remote."""


def duration(value_ns: int, glyphs: Glyphs) -> str:
    """Write nanoseconds in three digits and the unit that suits them."""
    return wording.duration(value_ns, glyphs.micro)


def printable(text: str, glyphs: Glyphs) -> str:
    """Make a name from the wire safe to print: no control characters, ASCII where asked."""
    shown = wording.printable(text)
    return shown if glyphs is not ASCII else shown.encode("ascii", "replace").decode("ascii")


def fit(text: str, width: int, glyphs: Glyphs) -> str:
    """Make a name printable and exactly `width` cells long."""
    shown = printable(text, glyphs)
    if cell_len(shown) <= width:
        return set_cell_size(shown, width)
    return set_cell_size(shown, width - 1) + glyphs.cut


def short(text: str, page: Page) -> str:
    """Make a name printable, and cut it where it would be most of a line."""
    shown = printable(text, page.glyphs)
    if page.everything or cell_len(shown) <= LONGEST_NAME:
        return shown
    return set_cell_size(shown, LONGEST_NAME - 1).rstrip() + page.glyphs.cut


def named(span: Span, page: Page) -> str:
    """A span's name and its service: `chat gemma (adviser)`."""
    return f"{short(span.name, page)} ({short(span.resource.service, page)})"


def paragraph(parts: Iterable[str], page: Page, separator: str = " ", indent: int = 2) -> str:
    """Fill lines with parts, each unbroken where it fits; later lines as deep as the first."""
    glued = separator.join(part.replace(" ", _GLUE) for part in parts)
    margin = " " * indent
    filled = textwrap.fill(
        glued,
        max(page.width, 40),
        initial_indent=margin,
        subsequent_indent=margin,
        break_on_hyphens=False,
    )
    return filled.replace(_GLUE, " ")
