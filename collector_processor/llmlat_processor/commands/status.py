"""`llmlat processor status`: asks a running processor what it is at, and shows that it adds up."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from http.client import HTTPException
from typing import Final, TextIO
from urllib.error import HTTPError
from urllib.parse import urlsplit

from rich.live import Live
from rich.text import Text

from llmlat_processor.commands.output import Screen
from llmlat_processor.model.status import Books, Sending, Status
from llmlat_processor.views.wording import printable

DONE: Final = 0
NOT_WELL: Final = 1
USAGE: Final = 2

PORT: Final = 8889
TOKEN_VARIABLE: Final = "LLMLAT_TOKEN"
EVERY_S: Final = 2.0

SAYS: Final = "llmlat processor status"
SUMMARY: Final = "tell what a running processor is at"

EPILOG: Final = f"""\
examples:
  llmlat processor status
  llmlat processor status --endpoint gateway:8889 --watch
  {TOKEN_VARIABLE}=... llmlat processor status --endpoint https://gateway:8889 --json

the endpoint is the one under `telemetry:` of the processor's config

exit codes: 0 all is well, 1 it does not answer, takes nothing now, or its books do not balance,
2 wrong usage
"""

_DENIED: Final = (401, 403)
_BYTES_OF_A_UNIT: Final = 1024

Fetch = Callable[[str], bytes]
"""The body of what a URL answers, asked for with the token.

OSError says why none comes, HTTPException that what comes is none.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--endpoint",
        default=f"127.0.0.1:{PORT}",
        metavar="HOST:PORT",
        help="where the processor tells of itself; or a URL (default: %(default)s)",
    )
    parser.add_argument(
        "--token",
        default=os.environ.get(TOKEN_VARIABLE, ""),
        help=f"what it asks for, if it does (better: {TOKEN_VARIABLE} of the environment)",
    )
    parser.add_argument("--json", action="store_true", help="write it as a line of JSON")
    parser.add_argument(
        "--watch", action="store_true", help=f"again every {EVERY_S:g} seconds, until Ctrl-C"
    )


def status(
    arguments: Namespace, fetch: Fetch, out: TextIO, err: TextIO, pause: Callable[[float], None]
) -> int:
    """Tell what a processor is at; the exit code says whether all is well.

    Args:
        arguments: as `add_arguments` declares them.
        fetch: asks the processor.
        out: for what it is at.
        err: for why that is not known.
        pause: waits so many seconds.
    """
    try:
        url = _url(arguments.endpoint)
    except ValueError as error:
        print(f"{SAYS}: {error}", file=err)
        return USAGE
    asking = _Asking(url, fetch)
    if not arguments.watch:
        return _tell(asking, out, err, as_json=arguments.json)
    try:
        return _watch(asking, out, err, pause, as_json=arguments.json)
    except KeyboardInterrupt:
        return DONE


class _Asking:
    """One processor, asked again and again."""

    def __init__(self, url: str, fetch: Fetch) -> None:
        self.where = urlsplit(url).netloc.rpartition("@")[2]
        self._url = url
        self._fetch = fetch

    def status(self) -> Status | str:
        """What it is at, or why nobody knows."""
        try:
            return Status.of(json.loads(self._fetch(self._url)))
        except HTTPError as error:
            return self._refused(error)
        except OSError as error:
            reason = getattr(error, "reason", error)
            why = getattr(reason, "strerror", None) or reason
            return (
                f"nothing can be fetched from {self.where} ({printable(str(why))}); does the "
                "processor run, and is this the address of its telemetry?"
            )
        except (ValueError, RecursionError, HTTPException) as error:
            return f"{self.where} answers, but not with a status ({printable(str(error))})"

    def _refused(self, error: HTTPError) -> str:
        with error:
            if error.code in _DENIED:
                return f"{self.where} wants a token: set {TOKEN_VARIABLE}, or give --token"
            hint = "is it the address of a processor's telemetry?"
            return f"{self.where} answers with HTTP {error.code}; {hint}"


def _tell(asking: _Asking, out: TextIO, err: TextIO, *, as_json: bool) -> int:
    told = asking.status()
    if isinstance(told, str):
        print(f"{SAYS}: {told}", file=err)
        return NOT_WELL
    if as_json:
        _write_line(told, out)
    else:
        Screen(out).print(_picture(told, asking.where), soft_wrap=True)
    return DONE if _is_well(told) else NOT_WELL


def _watch(
    asking: _Asking, out: TextIO, err: TextIO, pause: Callable[[float], None], *, as_json: bool
) -> int:
    """Tell until it is interrupted; on a terminal always at the same place."""
    screen = Screen(out)
    if as_json or not screen.is_terminal:
        while True:
            _tell(asking, out, err, as_json=as_json)
            out.flush()
            pause(EVERY_S)
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            told = asking.status()
            shown = Text(told) if isinstance(told, str) else _picture(told, asking.where)
            live.update(shown, refresh=True)
            pause(EVERY_S)


def _write_line(told: Status, out: TextIO) -> None:
    json.dump(told.document(), out)
    out.write("\n")


def _is_well(told: Status) -> bool:
    return not told.not_ready and told.books.balances


def _url(endpoint: str) -> str:
    """Where the status is asked for.

    Raises:
        ValueError: it is no host and port, and no URL.
    """
    whole = endpoint if "://" in endpoint else f"http://{endpoint}"
    try:
        parts = urlsplit(whole)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or (port is None and "://" not in endpoint):
        raise ValueError(f"--endpoint {endpoint!r} is not a HOST:PORT or a URL")
    host = parts.netloc if parts.hostname else f"127.0.0.1:{port}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}/status"


def _picture(told: Status, where: str) -> Text:
    """All of it, for a person."""
    picture = Text()
    state = f"takes nothing now: {printable(told.not_ready)}" if told.not_ready else "ready"
    picture.append(f"{where}: {printable(told.mode)}, up {_period(told.uptime_s)}, ")
    picture.append(f"{state}\n\n", "red" if told.not_ready else "")
    _draw_books(picture, told.books)
    for line in (*_beside(told.books), *_kept(told), *_sent(told), *_workers(told)):
        picture.append(f"\n{printable(line)}")
    return picture


def _draw_books(picture: Text, books: Books) -> None:
    """Both sides of the books, each with its sum."""
    came = {"received": books.received, "added": books.added}
    went = {
        "sent": books.sent,
        "repeated": books.repeated,
        "consumed": books.consumed,
        "held": books.held,
        "to be sent": books.queued,
        **{f"dropped ({printable(why)})": count for why, count in books.dropped.items()},
    }
    names = max(map(len, (*came, *went)))
    digits = max(len(f"{count:,}") for count in (books.came, books.went, *went.values()))
    for side, whole in ((came, books.came), (went, books.went)):
        for name, count in side.items():
            picture.append(f"  {name:{names}}  {count:>{digits},}\n")
        picture.append(f"  {'-' * names}  {'-' * digits}\n  {'':{names}}  {whole:>{digits},}")
        if side is went:
            verdict = "the books balance" if books.balances else "the books do not balance"
            picture.append(f"  {verdict}", "green" if books.balances else "bold red")
        picture.append("\n\n" if side is came else "\n")


def _beside(books: Books) -> Iterator[str]:
    """What is counted and no part of the sums."""
    again = f", {books.revisions:,} again with late spans" if books.revisions else ""
    yield f"traces: {books.traces:,} explained{again}"
    counts = {
        **{f"as they came ({why})": count for why, count in books.as_they_came.items()},
        "late": books.late,
        "from the journal": books.replayed,
        "damaged": books.refused,
        **{f"{kind} requests": count for kind, count in books.other.items()},
    }
    if any(counts.values()):
        yield "also: " + ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def _kept(told: Status) -> Iterator[str]:
    """What is in memory and on disk."""
    yield (
        f"in memory: {told.held_traces:,} traces of {_size(told.held_bytes)}, "
        f"{_size(told.skeleton_bytes)} of those that went on, {_size(told.waiting_bytes)} waiting"
    )
    if told.journal is None:
        yield "journal: none"
        return
    health = "healthy" if told.journal.is_healthy else "CANNOT BE WRITTEN"
    kept = f"{told.journal.batches:,} batches of {_size(told.journal.kept_bytes)}"
    yield f"journal: {kept}, {health}"


def _sent(told: Status) -> Iterator[str]:
    for where, sending in told.destinations.items():
        yield f"to {where}: {_sending(sending)}"
        if sending.last_error:
            yield f"  last error: {sending.last_error}"


def _sending(sending: Sending) -> str:
    dropped = f", {sending.dropped:,} dropped" if sending.dropped else ""
    waiting = f"{sending.queued:,} to be sent ({_size(sending.queue_bytes)})"
    return f"{sending.sent:,} sent, {waiting}{dropped}"


def _workers(told: Status) -> Iterator[str]:
    for worker in told.workers:
        books = worker.books
        doing = worker.not_ready or f"{books.held:,} held ({_size(worker.held_bytes)})"
        yield f"worker {worker.name}: {books.received:,} received, {books.traces:,} traces, {doing}"


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < _BYTES_OF_A_UNIT:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _BYTES_OF_A_UNIT
    return f"{size:.1f} GiB"


def _period(length_s: float) -> str:
    """The two largest units of a time that somebody waits for."""
    minutes, seconds = divmod(int(length_s), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    for large, small, words in ((days, hours, "{} d {} h"), (hours, minutes, "{} h {} min")):
        if large:
            return words.format(large, small)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
