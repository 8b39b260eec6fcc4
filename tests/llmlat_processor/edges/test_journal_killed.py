"""A process that is killed in the middle of its work: what it has said is true of the file."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from llmlat_processor.edges.journal import Journal
from llmlat_processor.settings import JournalSettings

PROGRAM = """\
import sys
from itertools import count
from pathlib import Path
from llmlat_processor.edges.journal import Journal
from llmlat_processor.settings import JournalSettings

journal = Journal(Path(sys.argv[1]), JournalSettings())
for number in count():
    batch = journal.append(bytes([number % 256]) * 50_000, 3)
    print("kept", batch, flush=True)
    if number % 2:
        journal.settle({batch: [0, 2], batch - 1: [0, 1, 2]})
        print("settled", batch, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 10, 100, 1_000])
def test_nothing_that_was_said_to_be_kept_is_lost_and_nothing_settled_comes_back(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "journal.db"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    kept: set[int] = set()
    settled: set[int] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout, start=1):
            word, batch = line.split()
            (kept if word == "kept" else settled).add(int(batch))
            if number == lines:
                process.kill()
    with closing(Journal(path, JournalSettings())) as journal:
        found = {entry.batch: entry for entry in journal.replay()}
        assert journal.damaged == 0
    gone = {batch - 1 for batch in settled}
    last = max(kept)  # it and the one before may be being settled, and may be so already
    assert kept - gone - {last, last - 1} <= set(found)
    assert last in found
    assert not gone & set(found)
    assert set(found) - kept <= {last + 1}  # written, and killed before it was said
    assert all(found[batch].settled == {0, 2} for batch in settled)
    assert all(entry.content == content(batch) for batch, entry in found.items())


def content(batch: int) -> bytes:
    return bytes([(batch - 1) % 256]) * 50_000
