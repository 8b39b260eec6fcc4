"""Writes one explained trace on a stream: as a picture, or as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final, TextIO

from rich.console import Console

from llmlat_processor.commands.streams import carries_unicode
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.views.document import document
from llmlat_processor.views.terminal import CAVEAT, Answer, render

AnswersByRoot = Mapping[Span, Sequence[Answer]]

NO_ANSWERS: Final[AnswersByRoot] = {}


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
