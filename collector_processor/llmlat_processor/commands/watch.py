"""`llmlat watch`: receives spans and draws each trace as soon as it is finished."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TextIO

from rich.status import Status

from llmlat_processor.commands.output import Screen, draw, write_line
from llmlat_processor.commands.page import save, told
from llmlat_processor.model import ExplainedTrace

DONE: Final = 0
NOT_STARTED: Final = 1
USAGE: Final = 2

STATUS_EVERY_S: Final = 0.25

HOW_TO_SEND: Final = """\
Receiving OTLP on {address}. In the app:

  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}
  import llmlat_otel.auto

A trace is drawn a few seconds after its last span. Ctrl-C ends.
"""


class Running(Protocol):
    """A receiver at work."""

    @property
    def address(self) -> str:
        """Host and port that it listens on."""

    def books(self) -> object:
        """What became of every span so far; printed as it is."""

    def stop(self) -> None:
        """Hand on what is held, and end."""


Start = Callable[[str, Callable[[ExplainedTrace], None]], Running]


def watch(
    listen: str,
    start: Start,
    *,
    limit: int | None,
    as_json: bool,
    out: TextIO,
    err: TextIO,
    html: str = "",
) -> int:
    """Draw finished traces until there were enough, or until the user has seen enough.

    Args:
        listen: host and port to receive on.
        start: begins to receive there, and hands on each finished trace from a thread of its
            own. Raises OSError where the address cannot be had, ValueError where it is none.
        limit: how many traces are enough; None for no end.
        as_json: True writes a line of JSON a trace on `out`, and all else on `err`.
        out: for traces, flushed after each one.
        err: for what went wrong.
        html: a file that holds the last drawn trace as a page; empty for none.
    """
    finished: SimpleQueue[ExplainedTrace] = SimpleQueue()
    try:
        running = start(listen, finished.put)
    except OSError as error:
        print(f"llmlat watch: {error.strerror or error}", file=err)
        return NOT_STARTED
    except ValueError as error:
        print(f"llmlat watch: {error}", file=err)
        return USAGE
    screen, json_out = (err, out) if as_json else (out, None)
    _Session(running, finished, limit, json_out, screen, html).run()
    return DONE


class _Session:
    """One watch from the first instruction to the last line of the books."""

    def __init__(
        self,
        running: Running,
        finished: SimpleQueue[ExplainedTrace],
        limit: int | None,
        json_out: TextIO | None,
        screen: TextIO,
        html: str,
    ) -> None:
        self.running = running
        self.finished = finished
        self.limit = limit
        self.drawn = 0
        self.json_out = json_out
        self.screen = screen
        self.console = Screen(screen)
        self.html = html
        self.last: ExplainedTrace | None = None

    def run(self) -> None:
        """Draw until it is enough, then close the books; receiving ends whatever happens."""
        try:
            self._draw_until_it_is_enough()
        finally:
            self.running.stop()
        self._draw_rest()
        self._say(str(self.running.books()))
        if self.html and self.last is not None:
            self._say(save([told(self.last)], self.html, self.screen))

    def _draw_until_it_is_enough(self) -> None:
        self._say(HOW_TO_SEND.format(address=self.running.address))
        try:
            with self.console.status("", refresh_per_second=1 / STATUS_EVERY_S) as status:
                while not self._has_enough():
                    self._draw_next(status)
        except KeyboardInterrupt:
            self._say("")

    def _has_enough(self) -> bool:
        return self.limit is not None and self.drawn >= self.limit

    def _draw_next(self, status: Status) -> None:
        """Wait for a trace, but not so long that the status line looks frozen."""
        try:
            explained = self.finished.get(timeout=STATUS_EVERY_S)
        except Empty:
            status.update(str(self.running.books()))
        else:
            self._draw(explained)

    def _draw_rest(self) -> None:
        """What was still held is finished by the end of receiving."""
        while not (self._has_enough() or self.finished.empty()):
            self._draw(self.finished.get())

    def _draw(self, explained: ExplainedTrace) -> None:
        self.drawn += 1
        self.last = explained
        if self.json_out is None:
            draw(explained, self.console)
            self.console.file.flush()
        else:
            write_line(explained, self.json_out)
            self.json_out.flush()

    def _say(self, words: str) -> None:
        self.console.print(words, markup=False)
        self.console.file.flush()
