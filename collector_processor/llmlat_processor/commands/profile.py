"""`llmlat profile`: a file of timelines in, a report or a refusal out."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.streams import carries_unicode
from llmlat_processor.profile import profile
from llmlat_processor.timelines.demo import defective_lines, demo_lines
from llmlat_processor.timelines.records import Defect, Records, read_records
from llmlat_processor.timelines.report import (
    refusal_document,
    refusal_text,
    report_document,
    report_text,
)

DONE = 0
REFUSED = 2


def profile_file(
    file: str, *, as_json: bool, percentiles: Sequence[int], out: TextIO, progress: Progress
) -> int:
    """Report on one file (`-` is standard input), or refuse it with exit code 2."""
    try:
        records = read_records(_counted(_lines(file), progress))
    except OSError as error:
        progress.tell(f"llmlat profile: {file}: {error.strerror}")
        return REFUSED
    progress.clear()
    if not records.timelines and not records.defects:
        records = Records((), (Defect(1, None, "the file holds no timeline"),))
    if records.defects:
        _refuse(records, file, progress, as_json=as_json, out=out)
        return REFUSED
    report = profile(records.timelines, percentiles)
    if as_json:
        _write(report_document(report, file), out)
    else:
        print(report_text(report, file, unicode=carries_unicode(out)), file=out)
    return DONE


def profile_demo(*, as_json: bool, percentiles: Sequence[int], out: TextIO) -> int:
    """Report on a population with a growing queue, and refuse a record with a broken clock."""
    report = profile(read_records(demo_lines()).timelines, percentiles)
    defects = read_records(defective_lines()).defects
    if as_json:
        _write(
            {"profile": report_document(report, "demo"), **refusal_document(defects, "demo")}, out
        )
        return DONE
    print(report_text(report, "demo", unicode=carries_unicode(out)), file=out)
    print("\nThe same request with a prefill that ends 5 ms before it starts:\n", file=out)
    print(refusal_text(defects, "demo"), file=out)
    return DONE


def _lines(file: str) -> Iterator[bytes]:
    """Lines as bytes: one that is not UTF-8 is a defect of that line, not of the file."""
    if file == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed")
        yield from sys.stdin.buffer
        return
    with Path(file).open("rb") as lines:
        yield from lines


def _counted(lines: Iterator[bytes], progress: Progress) -> Iterator[bytes]:
    for number, line in enumerate(lines, start=1):
        progress.at(f"reading line {number:,}")
        yield line


def _refuse(records: Records, file: str, progress: Progress, *, as_json: bool, out: TextIO) -> None:
    if as_json:
        _write(refusal_document(records.defects, file), out)
    progress.tell(refusal_text(records.defects, file))


def _write(document: dict[str, object], out: TextIO) -> None:
    json.dump(document, out, indent=2)
    out.write("\n")
