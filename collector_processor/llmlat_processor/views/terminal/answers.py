"""Writes what-ifs: what was asked, what it saves, and what the answer does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, paragraph, printable
from llmlat_processor.views.wording import CAVEAT, Answer


def draw_answers(answers: Sequence[Answer], page: Page) -> Iterator[Text]:
    """Write each answer on a line of its own, and the caveat below them."""
    if not answers:
        return
    yield Text("What if", theme.HEADING)
    for answer in answers:
        yield Text(paragraph(_words(answer, page), page))
    yield Text(paragraph(CAVEAT.split(), page), theme.QUIET)


def _words(answer: Answer, page: Page) -> Iterator[str]:
    glyphs = page.glyphs
    before_ns = answer.duration_ns + answer.saves_ns
    costs = answer.saves_ns < 0
    verb, sign = ("costs", -1) if costs else ("saves", 1)
    yield f"{printable(answer.asked, glyphs)}:"
    yield f"{verb} {duration(sign * answer.saves_ns, glyphs)},"
    yield f"{duration(answer.duration_ns, glyphs)} instead of {duration(before_ns, glyphs)}"
    if answer.saves_low_ns != answer.saves_high_ns:
        bounds = sorted((sign * answer.saves_low_ns, sign * answer.saves_high_ns))
        low, high = (duration(bound, glyphs) for bound in bounds)
        yield f"({verb} between {low} and {high}, by what had to wait for what)"
