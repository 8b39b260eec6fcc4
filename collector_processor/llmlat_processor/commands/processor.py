"""`llmlat processor`: stands in the way of spans, and adds to each trace where its time went."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol, TextIO

from llmlat_processor.commands.output import Screen
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.settings import INLINE, Settings, Views
from llmlat_processor.views.wording import printable
from llmlat_processor.window import SECOND_NS

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2

MOST_TOLD: Final = 20
"""Lines about findings at the end; there may be as many as kinds times pairs of services."""

STATUS_EVERY_S: Final = 0.25
CONNECT_S: Final = 1.0


class Running(Protocol):
    """A processor at work."""

    @property
    def address(self) -> str:
        """Host and port that it listens on."""

    @property
    def destination(self) -> str:
        """Host and port that it sends to."""

    def is_connected(self, timeout_s: float) -> bool:
        """Whether the destination answers; waits so long for it."""

    def has_ended(self, timeout_s: float) -> bool:
        """Whether it has ended by itself; waits so long for it. `stop` raises why."""

    def books(self) -> object:
        """What became of every span so far; printed as it is."""

    def found(self) -> Sequence[FindingCount]:
        """How often what was found in traces, between which services."""

    def stop(self) -> None:
        """Send on what is held, and end."""


def forward(start: Callable[[], Running], err: TextIO) -> int:
    """Forward spans until the user ends it.

    Args:
        start: begins to receive and to send. Raises OSError where the address cannot be had,
            ValueError where one is none.
        err: for everything that is said.
    """
    console = Screen(err)
    try:
        running = start()
    except OSError as error:
        print(f"llmlat processor: {error.strerror or error}", file=err)
        return FAILED
    except ValueError as error:
        print(f"llmlat processor: {error}", file=err)
        return USAGE
    _Session(running, console).run()
    return DONE


def settings_of(arguments: Namespace) -> Settings:
    """What was asked for on the command line."""
    limits = replace(
        INLINE.window,
        idle_ns=round(arguments.idle * SECOND_NS),
        hold_max_ns=round(arguments.hold_max * SECOND_NS),
    )
    views = Views(lane=arguments.lane == "on", jaeger_warnings=arguments.jaeger_warnings)
    return replace(INLINE, window=limits, views=views)


class _Session:
    """One run from the first word to the last line of the books."""

    def __init__(self, running: Running, console: Screen) -> None:
        self.running = running
        self.console = console

    def run(self) -> None:
        """Forward until it is interrupted, then close the books; it ends whatever happens."""
        try:
            self._forward()
        except KeyboardInterrupt:
            self._say("Sending what is held ...")
        finally:
            try:
                self.running.stop()
            finally:
                self._say(str(self.running.books()))
                self._tell_findings(self.running.found())

    def _forward(self) -> None:
        running = self.running
        self._say(f"Receiving OTLP on {running.address}, sending to {running.destination}.")
        if not running.is_connected(CONNECT_S):
            self._say(f"Nobody answers at {running.destination} yet; spans wait until it does.")
        with self.console.status("", refresh_per_second=1 / STATUS_EVERY_S) as status:
            while not running.has_ended(STATUS_EVERY_S):
                status.update(str(running.books()))

    def _tell_findings(self, found: Sequence[FindingCount]) -> None:
        """A line for each kind between two services; the series of a metric, at the end."""
        for row in found[:MOST_TOLD]:
            between = f"{row.caller or 'nobody'} -> {row.callee or 'nobody'}"
            self._say(f"found {row.total} x {row.kind.value}, {printable(between)}")
        if len(found) > MOST_TOLD:
            self._say(f"found {len(found) - MOST_TOLD} more kinds or pairs of services")

    def _say(self, words: str) -> None:
        self.console.print(words, markup=False, soft_wrap=True)
        self.console.file.flush()
