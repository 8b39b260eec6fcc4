"""`llmlat show`: spans from files or a Jaeger in, every trace explained: drawn, or as a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from llmlat_processor.breaks import Breaks
from llmlat_processor.commands import perfetto
from llmlat_processor.commands.loading import Fetch, by_trace, load_all, nowhere
from llmlat_processor.commands.output import AnswersByRoot, Screen, draw, write_line
from llmlat_processor.commands.page import save, told
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.streams import is_file
from llmlat_processor.commands.what_if import Supposition, answer
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.schedule import Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.views.wording import Answer

DONE: Final = 0
NOTHING_SHOWN: Final = 1
UNANSWERED: Final = 2

SAYS: Final = "llmlat show"


@dataclass(frozen=True, slots=True)
class Request:
    """What `show` was asked for.

    Attributes:
        files: paths, or addresses of traces in a Jaeger; `-` is standard input.
        trace: start of a trace id in hex; empty for every trace.
        suppositions: the what-ifs.
        as_json: one JSON document a trace and line instead of pictures.
        everything: True leaves nothing out of the pictures.
        html: where all go as one page instead of pictures; empty for no page.
        perfetto: where all go as one file for Perfetto instead of pictures; empty for none.
    """

    files: Sequence[str]
    trace: str
    suppositions: Sequence[Supposition]
    as_json: bool
    everything: bool
    html: str = ""
    perfetto: str = ""


def show(request: Request, out: TextIO, progress: Progress, fetch: Fetch = nowhere) -> int:
    """Explain every trace of the files; exit code 1 where there is none to show.

    A what-if that no trace could answer is exit code 2, after all has been shown.
    """
    spans = load_all(SAYS, request.files, progress, fetch)
    known = by_trace(spans)
    traces = [known[trace] for trace in known if trace.hex().startswith(request.trace)]
    if not traces:
        progress.tell(f"{SAYS}: {_why_nothing(known, request.trace)}")
        return NOTHING_SHOWN
    console = Screen(out)
    is_unseen = is_file(out)
    answered, breaks = set[str](), Breaks()
    on_page, in_perfetto = [], []
    for number, members in enumerate(traces, start=1):
        if is_unseen:
            progress.at(f"explaining trace {number:,} of {len(traces):,}")
        explained = breaks.told(process(members))
        plans = schedules(explained.aligned) if request.html or request.suppositions else {}
        answers = _answers(explained, plans, request.suppositions, progress)
        answered.update(answer.asked for given in answers.values() for answer in given)
        if request.html:
            on_page.append(told(explained, plans, answers, request.suppositions))
        if request.perfetto:
            in_perfetto.append(explained)
        if request.as_json:
            write_line(explained, out, answers)
        elif not (request.html or request.perfetto):
            draw(explained, console, answers, everything=request.everything)
    progress.clear()
    if request.html:
        progress.tell(f"{SAYS}: {save(on_page, request.html, out)}")
    if request.perfetto:
        progress.tell(f"{SAYS}: {perfetto.save(in_perfetto, request.perfetto, out)}")
    return DONE if answered.issuperset(asked.text for asked in request.suppositions) else UNANSWERED


def _why_nothing(known: Iterable[bytes], prefix: str) -> str:
    ids = [trace.hex() for trace in known]
    if not ids:
        return "no span could be read"
    listed = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    return f"no trace id starts with {prefix!r}; there are {listed}"


def _answers(
    explained: ExplainedTrace,
    plans: Mapping[Span, Schedule],
    suppositions: Sequence[Supposition],
    progress: Progress,
) -> AnswersByRoot:
    answers: dict[Span, list[Answer]] = {}
    for supposition in suppositions:
        try:
            given = answer(supposition, explained, plans)
        except ValueError as error:
            trace = explained.trace.trace_id.hex()
            progress.tell(f"{SAYS}: trace {trace}: {error}")
            continue
        for root, one in given.items():
            answers.setdefault(root, []).append(one)
    return answers
