"""Reads the spans of all files that a command was given, and says what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llmlat_processor import files
from llmlat_processor.commands.progress import Progress
from llmlat_processor.jaeger_address import Address, is_address, parse
from llmlat_processor.model import Span

Fetch = Callable[[Address], Iterable[bytes]]
"""Asks a Jaeger for a trace: what it answers, the best first; OSError says why nothing comes."""


def nowhere(address: Address) -> Iterable[bytes]:
    """There is nobody here who can ask a Jaeger."""
    raise OSError(f"nobody here can ask {address.base}")


def load_all(
    command: str, paths: Sequence[str], progress: Progress, fetch: Fetch = nowhere
) -> list[Span]:
    """Every span of the files; what is damaged is said with file and line, and passed over.

    Args:
        command: `llmlat show`, as it stands before what is said.
        paths: files, or addresses of traces in a Jaeger; `-` is standard input.
        progress: is told what is being read.
        fetch: asks a Jaeger.
    """
    spans: list[Span] = []
    for path in paths:
        progress.at(f"reading {path}")
        try:
            loaded = _loaded(path, progress, fetch)
        except files.UnreadableFileError as error:
            progress.tell(f"{command}: {error}")
            continue
        spans.extend(loaded.spans)
        for damaged in loaded.damaged:
            progress.tell(f"{command}: {damaged}")
        if loaded.spans and loaded.damaged:
            progress.tell(f"{command}: {path}: the rest of it is used")
        elif not loaded.damaged and not loaded.spans:
            progress.tell(f"{command}: {path}: it holds no span")
    progress.clear()
    return spans


def by_trace(spans: Iterable[Span]) -> dict[bytes, list[Span]]:
    """Spans of each trace, in the order of first appearance."""
    traces: dict[bytes, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    return traces


def _loaded(path: str, progress: Progress, fetch: Fetch) -> files.Loaded:
    """What a file holds, or what a Jaeger answers."""
    if not is_address(path):
        return files.load(path, lambda spans: progress.at(f"reading {path}: {spans:,} spans"))
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
