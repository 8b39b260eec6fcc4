"""`llmlat show`: spans from files or a Jaeger in, every trace explained: drawn, or as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from llmlat_processor import files
from llmlat_processor.commands import perfetto
from llmlat_processor.commands.output import AnswersByRoot, Screen, draw, write_line
from llmlat_processor.commands.page import save, told
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.streams import is_file
from llmlat_processor.commands.what_if import Supposition, answer
from llmlat_processor.jaeger_address import Address, is_address, parse
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.schedule import Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.views.wording import Answer

DONE: Final = 0
NOTHING_SHOWN: Final = 1
UNANSWERED: Final = 2

Fetch = Callable[[Address], Iterable[bytes]]
"""Asks a Jaeger for a trace: what it answers, the best first; OSError says why nothing comes."""


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


def _nowhere(address: Address) -> Iterable[bytes]:
    raise OSError(f"nobody here can ask {address.base}")


def show(request: Request, out: TextIO, progress: Progress, fetch: Fetch = _nowhere) -> int:
    """Explain every trace of the files; exit code 1 where there is none to show.

    A what-if that no trace could answer is exit code 2, after all has been shown.
    """
    spans = _load(request.files, progress, fetch)
    traces = _by_trace(spans, request.trace)
    if not traces:
        progress.tell(f"llmlat show: {_why_nothing(spans, request.trace)}")
        return NOTHING_SHOWN
    console = Screen(out)
    is_unseen = is_file(out)
    answered: set[str] = set()
    on_page, in_perfetto = [], []
    for number, members in enumerate(traces, start=1):
        if is_unseen:
            progress.at(f"explaining trace {number:,} of {len(traces):,}")
        explained = process(members)
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
        progress.tell(f"llmlat show: {save(on_page, request.html, out)}")
    if request.perfetto:
        progress.tell(f"llmlat show: {perfetto.save(in_perfetto, request.perfetto, out)}")
    return DONE if answered.issuperset(asked.text for asked in request.suppositions) else UNANSWERED


def _load(paths: Sequence[str], progress: Progress, fetch: Fetch) -> list[Span]:
    """Every span of the files; what is damaged is said with file and line, and passed over."""
    spans: list[Span] = []
    for path in paths:
        progress.at(f"reading {path}")
        try:
            loaded = _loaded(path, progress, fetch)
        except files.UnreadableFileError as error:
            progress.tell(f"llmlat show: {error}")
            continue
        spans.extend(loaded.spans)
        for damaged in loaded.damaged:
            progress.tell(f"llmlat show: {damaged}")
        if loaded.spans and loaded.damaged:
            progress.tell(f"llmlat show: {path}: the rest of it is shown")
        elif not loaded.damaged and not loaded.spans:
            progress.tell(f"llmlat show: {path}: it holds no span")
    progress.clear()
    return spans


def _loaded(path: str, progress: Progress, fetch: Fetch) -> files.Loaded:
    """What a file holds, or what a Jaeger answers."""
    if not is_address(path):
        return files.load(path, _reading(path, progress))
    try:
        return _fetched(path, fetch(parse(path)))
    except OSError as error:
        raise files.UnreadableFileError(f"{path}: {error}") from error
    except ValueError as error:  # its message names the address
        raise files.UnreadableFileError(str(error)) from error


def _fetched(name: str, answers: Iterable[bytes]) -> files.Loaded:
    """The first answer that holds a span: the API v3 of old wrote ids that are no OTLP."""
    fault = ValueError(f"{name}: the answer holds no span that can be read")
    for content in answers:
        try:
            loaded = files.read(content, name)
        except files.UnreadableFileError as error:
            fault = error
            continue
        if loaded.spans:
            return loaded
    raise fault


def _reading(path: str, progress: Progress) -> Callable[[int], None]:
    return lambda spans: progress.at(f"reading {path}: {spans:,} spans")


def _by_trace(spans: Iterable[Span], prefix: str) -> list[list[Span]]:
    """Spans of each trace that is asked for, in the order of first appearance."""
    traces: dict[bytes, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    return [members for trace, members in traces.items() if trace.hex().startswith(prefix)]


def _why_nothing(spans: Sequence[Span], prefix: str) -> str:
    if not spans:
        return "no span could be read"
    known = dict.fromkeys(span.trace_id.hex() for span in spans)
    listed = ", ".join([*known][:5]) + (", ..." if len(known) > 5 else "")
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
            progress.tell(f"llmlat show: trace {trace}: {error}")
            continue
        for root, one in given.items():
            answers.setdefault(root, []).append(one)
    return answers
