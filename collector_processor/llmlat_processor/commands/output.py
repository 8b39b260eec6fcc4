"""Writes one explained trace on a stream: as a picture, or as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final, NoReturn, TextIO

from rich.console import Console

from llmlat_processor.commands.streams import carries_unicode
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.views.document import document
from llmlat_processor.views.terminal import render
from llmlat_processor.views.wording import CAVEAT, Answer

AnswersByRoot = Mapping[Span, Sequence[Answer]]

NO_ANSWERS: Final[AnswersByRoot] = {}

NARROWEST: Final = 40
"""Narrower ones are not believed: with `COLUMNS=0` there would be no picture at all."""


class Screen(Console):
    """A console that tells its caller when nobody reads any more, instead of ending the process."""

    def __init__(self, out: TextIO) -> None:
        """Write to a terminal, or as plain text to whatever else `out` is."""
        super().__init__(file=out, highlight=False)
        if self.width < NARROWEST:  # noqa: PLR1730 - to set it always would end all resizing
            self.width = NARROWEST

    def on_broken_pipe(self) -> NoReturn:
        """Leave the exit code to the command line, and the clearing up to whoever waits for it."""
        raise BrokenPipeError


def draw(
    explained: ExplainedTrace,
    console: Console,
    answers: AnswersByRoot = NO_ANSWERS,
    *,
    everything: bool = False,
) -> None:
    """Draw one trace and a blank line."""
    picture = render(
        explained,
        console.width,
        answers=answers,
        unicode=carries_unicode(console.file),
        everything=everything,
    )
    console.print(picture)
    console.print()


def write_line(explained: ExplainedTrace, out: TextIO, answers: AnswersByRoot = NO_ANSWERS) -> None:
    """Write one trace as a line of JSON."""
    written = document(explained)
    if answers:
        listed = [
            {"root_span_id": root.span_id.hex(), **asdict(answer)}
            for root, given in answers.items()
            for answer in given
        ]
        written["what_if"] = {"caveat": CAVEAT, "answers": listed}
    json.dump(written, out)
    out.write("\n")
