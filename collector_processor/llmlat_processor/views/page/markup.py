"""The smallest parts of the page: escaped text, exact amounts, shares, addresses of rows.

Every number is a `<data>` whose value is the exact integer. `data-is` and `data-text` say which
key of the JSON document it is, below the `data-at` of the elements around it, so that a program
can read the document back out of the page.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Final

from llmlat_processor.model import Interval, Span
from llmlat_processor.views import wording
from llmlat_semconv.phases import FACTS, Phase
from llmlat_semconv.values import Evidence, PhaseClass, SectionLabel

NOTHING: Final = "\u2013"
"""In a cell without a figure: an en dash."""
LONGEST: Final = 1_000
"""Characters of a name: a longer one stands in every row, and nobody reads it in any of them."""
AT_MOST: Final = "≤ "
DOT: Final = '<b class="dot">●</b>'
DIAMOND: Final = '<b class="diamond">◆</b>'

_LOOKS: Final = {
    PhaseClass.COMPUTE: "compute",
    PhaseClass.QUEUEING: "queueing",
    PhaseClass.NETWORK: "network",
    PhaseClass.TRANSFER: "network",
    PhaseClass.OVERHEAD: "overhead",
    PhaseClass.IDLE: "idle",
    PhaseClass.REMOTE: "remote",
}
_DERIVED_LOOKS: Final = {
    SectionLabel.TRANSIT: "network",
    SectionLabel.HELD: "queueing",
    SectionLabel.WORK: "compute",
    SectionLabel.UNOBSERVED: "unobserved",
}
LOOKS: Final[dict[str, str]] = {
    **{phase.value: _LOOKS[FACTS[phase].phase_class] for phase in Phase},
    **{label.value: look for label, look in _DERIVED_LOOKS.items()},
}
"""A label's colour and pattern are those of its class ..."""
OWN_LOOKS: Final = frozenset(phase.value for phase in (Phase.PREFILL, Phase.TOOL, Phase.RETRIEVAL))
"""... but for these, which differ a little."""


@lru_cache(10_000)
def text(words: str) -> str:
    """Words that may come from anywhere, safe between tags and between quotes, cut if endless."""
    shown = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return escape(wording.printable(shown))


def name(words: str, key: str = "", kind: str = "") -> str:
    """A name from the wire; its direction of writing stays its own."""
    marked = f' class="{kind}"' if kind else ""
    if key:
        marked += f' data-text="{key}"'
    return f"<bdi{marked}>{text(words)}</bdi>"


def amount(value_ns: int, key: str, evidence: Evidence | None = None) -> str:
    """Nanoseconds, exact for programs and short for people."""
    return f"<data{figure(value_ns, key, evidence)}</data>"


def figure(value_ns: int, key: str, evidence: Evidence | None = None) -> str:
    """The same without its tags, for a `<data>` that is something else as well."""
    bound = AT_MOST if evidence is Evidence.BOUNDED else ""
    marked = f' data-is="{key}"' if key else ""
    return f' value="{value_ns}"{marked}>{bound}{wording.duration(value_ns)}'


def exact(value_ns: int, key: str) -> str:
    """Nanoseconds, exact for people too: what a proof is checked by."""
    return f'<data value="{value_ns}" data-is="{key}">{value_ns:,}</data>'


def exact_ends(known: Interval, key: str) -> str:
    """Both ends of an interval, for programs only."""
    ends = (("low", known.low_ns), ("high", known.high_ns))
    return "".join(
        f'<data value="{end}" data-is="{key}.{which}" hidden></data>'
        for which, end in ends
        if end is not None
    )


def count(number: int, key: str) -> str:
    """How many of something."""
    return f'<data value="{number}" data-is="{key}">{number:,}</data>'


def named_span(span: Span, address: str | None) -> str:
    """A span's name, which leads to its row if it has one, and its service."""
    shown = name(span.name)
    linked = shown if address is None else f'<a href="#{address}">{shown}</a>'
    return f'{linked} <span class="service">{name(span.resource.service)}</span>'


def share(part_ns: int, whole_ns: int) -> str:
    """A part of a whole, with a sign that the browser breaks at."""
    return escape(wording.percent(part_ns, whole_ns)).replace(" ", "\u00a0")


def across(part_ns: int, whole_ns: int) -> str:
    """The same as a length of CSS: `12.5%`, within 0 and 100."""
    return f"{min(max(100 * part_ns / max(whole_ns, 1), 0), 100):.5g}%"


def look(label: str) -> str:
    """The classes that give a label its colour and pattern."""
    own = f" of-{label}" if label in OWN_LOOKS else ""
    return f"is-{LOOKS.get(label, 'unobserved')}{own}"


def swatch(label: str, key: str = "") -> str:
    """A label with a patch of its colour."""
    marked = f' data-text="{key}"' if key else ""
    return f'<span class="swatch {look(label)}"{marked}>{text(label)}</span>'


class Addresses:
    """Ids of the rows: the span's where it is the only one of that id on the page."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, span_id: bytes) -> str:
        """An id that no other row has."""
        plain = f"span-{span_id.hex()}"
        count = self._used[plain] = self._used.get(plain, 0) + 1
        return plain if count == 1 else f"{plain}-{count}"
