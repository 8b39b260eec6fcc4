"""What is on disk follows the number of workers: journals of another number are dealt out anew.

    journal.sqlite               one process
    worker-0/journal.sqlite      several
    worker-1/journal.sqlite

Before anything else, so that nobody else has them open. A crash on the way loses nothing: what was
moved aside is found again, and what was dealt out already comes twice at most.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from llmlat_processor.edges.journal import Entry, Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.service.processor import CLOCKS, JOURNAL
from llmlat_processor.settings import JournalSettings
from llmlat_processor.wire import decode, encode
from llmlat_processor.wire.sharding import shard_of, shards
from llmlat_processor.wire.skeletons import unpack

ASIDE: Final = "resharding"
NO_LIMIT: Final = 1 << 62

_WORKER: Final = re.compile(r"worker-(\d+)")

_logger = logging.getLogger("llmlat_processor")


def journal_folders(state: Path, workers: int) -> Sequence[Path]:
    """Where each of so many processes has its journal."""
    return [state] if workers == 1 else [state / f"worker-{number}" for number in range(workers)]


def reshard(state: Path, workers: int, settings: JournalSettings | None) -> None:
    """Deal out what another number of workers has left.

    Args:
        state: folder of a processor's state.
        workers: how many processes there will be.
        settings: of the journals; None leaves everything as it is.

    Raises:
        OSError: a journal is in use, or cannot be had; the message says what to do.
    """
    if settings is None or not state.exists():
        return
    try:
        _reshard(state, workers, settings)
    except JournalError as error:
        raise OSError(str(error)) from error
    except OSError as error:
        raise OSError(f"{error.filename or state}: {error.strerror or error}") from error


def _reshard(state: Path, workers: int, settings: JournalSettings) -> None:
    settings = replace(settings, max_bytes=NO_LIMIT)  # what was accepted has to have room
    aside = state / ASIDE
    if {*_found(state)} - {*journal_folders(state, workers)} or _count(state) not in (0, workers):
        _move_aside(state, aside, settings)
    if aside.exists():
        _logger.warning("the journals in %s are dealt out to %d processes", state, workers)
        _deal_out(aside, journal_folders(state, workers), settings)
        shutil.rmtree(aside)


def _found(state: Path) -> Iterator[Path]:
    """The folders that have a journal."""
    if (state / JOURNAL).exists():
        yield state
    for folder in sorted(state.iterdir()):
        if _WORKER.fullmatch(folder.name) and (folder / JOURNAL).exists():
            yield folder


def _count(state: Path) -> int:
    """How many processes have shared the work."""
    return sum(1 for _ in _found(state))


def _move_aside(state: Path, aside: Path, settings: JournalSettings) -> None:
    aside.mkdir(mode=0o700, exist_ok=True)
    for folder in [*_found(state)]:
        Journal(folder / JOURNAL, settings).close()  # nobody has it, and it is one whole file
        place = _free(aside)
        place.mkdir(mode=0o700)
        (folder / JOURNAL).rename(place / JOURNAL)
        if (folder / CLOCKS).exists() and not (state / CLOCKS).exists():
            (folder / CLOCKS).rename(state / CLOCKS)


def _free(aside: Path) -> Path:
    number = 0
    while (aside / str(number)).exists():
        number += 1
    return aside / str(number)


def _deal_out(aside: Path, folders: Sequence[Path], settings: JournalSettings) -> None:
    with ExitStack() as stack:
        new = []
        for folder in folders:
            new.append(Journal(folder / JOURNAL, settings))
            stack.callback(new[-1].close)
        for place in sorted(aside.iterdir()):
            old = Journal(place / JOURNAL, settings)
            stack.callback(old.close)
            for entry in old.replay():
                old.settle({entry.batch: [*range(_deal(entry, new))]})


def _deal(entry: Entry, journals: Sequence[Journal]) -> int:
    """Put what is left of a batch where its traces will be; how many spans were ever in it."""
    if entry.sent:
        return _deal_skeletons(entry.content, journals)
    spans = decode(entry.content).spans
    left = [span for at, span in enumerate(spans) if at not in entry.settled]
    if left:
        for journal, part in zip(journals, shards(encode(left), len(journals)), strict=True):
            if part:
                journal.append(part, len(decode(part).spans))
    return len(spans)


def _deal_skeletons(packed: bytes, journals: Sequence[Journal]) -> int:
    """They are of one trace, and stay together as they are."""
    spans = unpack(packed)
    if spans:
        journal = journals[shard_of(spans[0].trace_id, len(journals))]
        journal.append(packed, len(spans), sent=True)
    return len(spans)
