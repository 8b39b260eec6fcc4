"""Whatever is appended, settled and opened again: a journal is what a mapping in memory is."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llmlat_processor.edges.journal import Entry, Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.settings import JournalSettings

MOST = 40_000


class JournalMachine(RuleBasedStateMachine):
    """A journal beside batches in memory: id -> what is kept of it, and how many spans."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(TemporaryDirectory())
        self.path = Path(folder) / "journal.db"
        self.journal = Journal(self.path, JournalSettings(max_bytes=MOST))
        self.kept: dict[int, tuple[Entry, int]] = {}

    def teardown(self) -> None:
        self.journal.close()
        self.stack.close()

    @property
    def held_bytes(self) -> int:
        return sum(len(entry.content) for entry, _ in self.kept.values())

    @rule(
        size=st.integers(0, 15_000), fill=st.binary(max_size=3), spans=st.integers(1, 70),
        sent=st.booleans(),
    )  # fmt: skip
    def append(self, size: int, fill: bytes, spans: int, sent: bool) -> None:
        content = fill * size
        if self.held_bytes + len(content) > MOST:
            with pytest.raises(JournalError):
                self.journal.append(content, spans, sent=sent)
            return
        batch = self.journal.append(content, spans, sent=sent)
        assert batch not in self.kept
        self.kept[batch] = Entry(batch, content, sent, frozenset()), spans

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        batches = data.draw(st.sets(st.sampled_from(sorted(self.kept)), min_size=1, max_size=4))
        done = {}
        for batch in batches:
            entry, spans = self.kept[batch]
            positions = data.draw(st.sets(st.integers(0, spans - 1)) | st.just(set(range(spans))))
            done[batch] = sorted(positions)
            settled = entry.settled | positions
            if len(settled) == spans:
                del self.kept[batch]
            else:
                self.kept[batch] = entry._replace(settled=settled), spans
        self.journal.settle(done)

    @rule()
    def open_again(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path, JournalSettings(max_bytes=MOST))

    @invariant()
    def is_the_same(self) -> None:
        assert list(self.journal.replay()) == [entry for _, (entry, _) in sorted(self.kept.items())]
        assert self.journal.batches == len(self.kept)
        assert self.journal.held_bytes == self.held_bytes
        assert self.journal.is_healthy


TestJournal = JournalMachine.TestCase
