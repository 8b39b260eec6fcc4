"""What a processor is at: its books, and what it holds, keeps and sends; also as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import TypeAlias

Document: TypeAlias = Mapping[str, object]
"""Of JSON: names, and numbers, texts, lists or such documents."""


@dataclass(frozen=True, slots=True)
class Books:
    """Every span accounted for.

    received + added = sent + repeated + consumed + held + queued + dropped

    Attributes:
        received: spans that were accepted, those that the journal brought back included.
        added: spans that were made here, for the lanes.
        sent: spans that a destination has taken over.
        repeated: spans that came again, exactly so, as their trace was held or after: sent once.
        consumed: spans of which a copy was all that was sent here, once they were looked at.
        held: spans of traces that are not complete yet, or that nobody has looked at yet.
        queued: spans that are still to be sent.
        dropped: spans that could not be sent, by reason.
        traces: how many traces were explained.
        as_they_came: spans that went on without an explanation, by reason.
        late: spans that came after their trace had gone on.
        revisions: traces that were explained again, with the late spans.
        replayed: how many of the received ones an earlier run had accepted, and not sent.
        refused: spans that were damaged; their exporter was told.
        other: requests that held no spans to look at, by kind.
    """

    received: int = 0
    added: int = 0
    sent: int = 0
    repeated: int = 0
    consumed: int = 0
    held: int = 0
    queued: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    traces: int = 0
    as_they_came: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    revisions: int = 0
    replayed: int = 0
    refused: int = 0
    other: Mapping[str, int] = field(default_factory=dict)

    @property
    def came(self) -> int:
        """The left side: all spans that there ever were here."""
        return self.received + self.added

    @property
    def went(self) -> int:
        """The right side: where they are."""
        gone = self.sent + self.repeated + self.consumed + sum(self.dropped.values())
        return gone + self.held + self.queued

    @property
    def balances(self) -> bool:
        """Whether every span is accounted for, and none more than once."""
        return self.came == self.went and min(self.held, self.queued) >= 0

    def document(self) -> dict[str, object]:
        """As plain data for JSON; `balances` is told too."""
        return {**asdict(self), "balances": self.balances}

    @classmethod
    def of(cls, document: object) -> Books:
        """The books of such data; what it does not tell is 0, what nobody knows is passed over.

        Raises:
            ValueError: it is no such data; the message says which part.
        """
        told = _document(document, "books")
        return cls(
            received=_count(told, "received"),
            added=_count(told, "added"),
            sent=_count(told, "sent"),
            repeated=_count(told, "repeated"),
            consumed=_count(told, "consumed"),
            held=_count(told, "held"),
            queued=_count(told, "queued"),
            dropped=_counts(told, "dropped"),
            traces=_count(told, "traces"),
            as_they_came=_counts(told, "as_they_came"),
            late=_count(told, "late"),
            revisions=_count(told, "revisions"),
            replayed=_count(told, "replayed"),
            refused=_count(told, "refused"),
            other=_counts(told, "other"),
        )

    def __str__(self) -> str:
        counts = {
            "repeated": self.repeated,
            "consumed": self.consumed,
            "held": self.held,
            "to be sent": self.queued,
            **{f"dropped ({why})": count for why, count in self.dropped.items()},
            "damaged": self.refused,
            **{f"{kind} requests": count for kind, count in self.other.items()},
        }
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        plain = ", ".join(f"{count} ({why})" for why, count in self.as_they_came.items())
        again = f", {self.revisions} again with late spans" if self.revisions else ""
        replayed = f" ({self.replayed} of them from the journal)" if self.replayed else ""
        came = f"{self.received} spans received{replayed}, {self.added} added"
        explained = f"{self.traces} traces explained{again}"
        as_they_came = f", spans as they came: {plain}" if plain else ""
        return f"{came}: {self.sent} sent{rest}; {explained}{as_they_came}"


@dataclass(frozen=True, slots=True)
class Sending:
    """What became of the spans for one destination.

    Attributes:
        sent: spans that it has taken over.
        queued: spans that are still to be sent to it.
        queue_bytes: how large these are.
        dropped: spans that could not be sent to it.
        last_error: what went wrong the last time that something did, in words; empty for never.
    """

    sent: int = 0
    queued: int = 0
    queue_bytes: int = 0
    dropped: int = 0
    last_error: str = ""

    @classmethod
    def of(cls, document: object) -> Sending:
        """Of plain data; raises ValueError as `Status.of`."""
        told = _document(document, "destination")
        return cls(
            sent=_count(told, "sent"),
            queued=_count(told, "queued"),
            queue_bytes=_count(told, "queue_bytes"),
            dropped=_count(told, "dropped"),
            last_error=_text(told, "last_error"),
        )


@dataclass(frozen=True, slots=True)
class Journaled:
    """What is kept on disk.

    Attributes:
        batches: how many.
        kept_bytes: how large they are.
        is_healthy: whether it can be written.
    """

    batches: int = 0
    kept_bytes: int = 0
    is_healthy: bool = True

    @classmethod
    def of(cls, document: object) -> Journaled:
        """Of plain data; raises ValueError as `Status.of`."""
        told = _document(document, "journal")
        is_healthy = _truth(told, "is_healthy")
        return cls(_count(told, "batches"), _count(told, "kept_bytes"), is_healthy)


@dataclass(frozen=True, slots=True)
class Worker:
    """One of several processes that share the work.

    Attributes:
        name: which one.
        books: its own.
        held_bytes: what it holds.
        not_ready: why it takes nothing now; empty where it does.
    """

    name: str
    books: Books
    held_bytes: int = 0
    not_ready: str = ""

    @classmethod
    def of(cls, document: object) -> Worker:
        """Of plain data; raises ValueError as `Status.of`."""
        told = _document(document, "worker")
        books = Books.of(told.get("books", {}))
        return cls(_text(told, "name"), books, _count(told, "held_bytes"), _text(told, "not_ready"))


@dataclass(frozen=True, slots=True)
class Status:
    """What a processor is at.

    Attributes:
        books: what became of every span so far.
        mode: `inline` or `tap`.
        uptime_s: for how long it has run, in seconds.
        not_ready: why it takes nothing now, in words; empty where it does.
        held_traces: traces that are not complete yet.
        held_bytes: how large their spans are.
        skeleton_bytes: what is remembered of traces that have gone on.
        forgotten_skeletons: of how many of their spans that was forgotten before it was of use.
        waiting_bytes: what nobody has looked at yet.
        destinations: what was sent where, by address.
        journal: None where nothing is kept on disk.
        workers: who shares the work; empty where one process does all of it.
    """

    books: Books
    mode: str = ""
    uptime_s: float = 0.0
    not_ready: str = ""
    held_traces: int = 0
    held_bytes: int = 0
    skeleton_bytes: int = 0
    forgotten_skeletons: int = 0
    waiting_bytes: int = 0
    destinations: Mapping[str, Sending] = field(default_factory=dict)
    journal: Journaled | None = None
    workers: Sequence[Worker] = ()

    def document(self) -> dict[str, object]:
        """As plain data for JSON."""
        return {**asdict(self), "books": self.books.document()}

    @classmethod
    def of(cls, document: object) -> Status:
        """The status of such data; what it does not tell is 0, what nobody knows is passed over.

        Raises:
            ValueError: it is no such data; the message says which part.
        """
        told = _document(document, "status")
        destinations = _document(told.get("destinations", {}), "destinations")
        journal = told.get("journal")
        return cls(
            books=Books.of(told.get("books")),
            mode=_text(told, "mode"),
            uptime_s=_seconds(told, "uptime_s"),
            not_ready=_text(told, "not_ready"),
            held_traces=_count(told, "held_traces"),
            held_bytes=_count(told, "held_bytes"),
            skeleton_bytes=_count(told, "skeleton_bytes"),
            forgotten_skeletons=_count(told, "forgotten_skeletons"),
            waiting_bytes=_count(told, "waiting_bytes"),
            destinations={where: Sending.of(one) for where, one in destinations.items()},
            journal=None if journal is None else Journaled.of(journal),
            workers=tuple(map(Worker.of, _list(told, "workers"))),
        )


def total(books: Iterable[Books]) -> Books:
    """The books of all workers as those of one."""
    return reduce(_both, books, Books())


def together(statuses: Mapping[str, Status]) -> Status:
    """The statuses of workers as that of one processor.

    Args:
        statuses: by name of the worker; at least one.
    """
    several = tuple(statuses.values())
    sendings: dict[str, Sending] = {}
    for one in several:
        for where, sending in one.destinations.items():
            sendings[where] = _both_sent(sendings.get(where, Sending()), sending)
    journals = [one.journal for one in several if one.journal is not None]
    return Status(
        books=total(one.books for one in several),
        mode=several[0].mode,
        uptime_s=max(one.uptime_s for one in several),
        not_ready="; ".join(
            f"{name}: {one.not_ready}" for name, one in statuses.items() if one.not_ready
        ),
        held_traces=sum(one.held_traces for one in several),
        held_bytes=sum(one.held_bytes for one in several),
        skeleton_bytes=sum(one.skeleton_bytes for one in several),
        forgotten_skeletons=sum(one.forgotten_skeletons for one in several),
        waiting_bytes=sum(one.waiting_bytes for one in several),
        destinations=sendings,
        journal=_all_kept(journals) if journals else None,
        workers=tuple(
            Worker(name, one.books, one.held_bytes, one.not_ready) for name, one in statuses.items()
        ),
    )


def _both(one: Books, other: Books) -> Books:
    return Books(
        received=one.received + other.received,
        added=one.added + other.added,
        sent=one.sent + other.sent,
        repeated=one.repeated + other.repeated,
        consumed=one.consumed + other.consumed,
        held=one.held + other.held,
        queued=one.queued + other.queued,
        dropped=_both_counts(one.dropped, other.dropped),
        traces=one.traces + other.traces,
        as_they_came=_both_counts(one.as_they_came, other.as_they_came),
        late=one.late + other.late,
        revisions=one.revisions + other.revisions,
        replayed=one.replayed + other.replayed,
        refused=one.refused + other.refused,
        other=_both_counts(one.other, other.other),
    )


def _both_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {**one, **{why: one.get(why, 0) + count for why, count in other.items()}}


def _both_sent(one: Sending, other: Sending) -> Sending:
    return Sending(
        one.sent + other.sent,
        one.queued + other.queued,
        one.queue_bytes + other.queue_bytes,
        one.dropped + other.dropped,
        one.last_error or other.last_error,
    )


def _all_kept(journals: Sequence[Journaled]) -> Journaled:
    return Journaled(
        sum(one.batches for one in journals),
        sum(one.kept_bytes for one in journals),
        all(one.is_healthy for one in journals),
    )


def _document(value: object, what: str) -> Document:
    if not isinstance(value, Mapping):
        raise _wrong(what, "names and values", value)
    return value


def _list(document: Document, name: str) -> Sequence[object]:
    value = document.get(name, ())
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    return value


def _count(document: Document, name: str) -> int:
    value = document.get(name, 0)
    if not isinstance(value, int):
        raise _wrong(name, "a whole number", value)
    return value


def _counts(document: Document, name: str) -> dict[str, int]:
    counts = _document(document.get(name, {}), name)
    return {why: _count(counts, why) for why in counts}


def _seconds(document: Document, name: str) -> float:
    value = document.get(name, 0.0)
    if not isinstance(value, int | float):
        raise _wrong(name, "a number of seconds", value)
    return float(value)


def _text(document: Document, name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    return value


def _truth(document: Document, name: str) -> bool:
    value = document.get(name, True)
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def _wrong(what: str, due: str, value: object) -> ValueError:
    return ValueError(f"{what} of a status must be {due}, not {value!r:.40}")
