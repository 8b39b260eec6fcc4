"""`llmlat processor`: stands in the way of spans, and adds to each trace where its time went."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol, TextIO

from llmlat_processor.commands.config import load, warn
from llmlat_processor.commands.output import Screen
from llmlat_processor.commands.processor_arguments import Asked, asked_of
from llmlat_processor.config import endpoints
from llmlat_processor.config.problems import ConfigError
from llmlat_processor.config.state_folder import state_folder
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.settings import (
    INLINE,
    ClientTls,
    Deployment,
    Destination,
    Explained,
    JournalSettings,
    Listener,
    Mode,
    Settings,
    Views,
)
from llmlat_processor.views.wording import printable
from llmlat_processor.window import SECOND_NS

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2

SAYS: Final = "llmlat processor"

MOST_TOLD: Final = 20
"""Lines about findings at the end; there may be as many as kinds times pairs of services."""

STATUS_EVERY_S: Final = 0.25
CONNECT_S: Final = 1.0


class Running(Protocol):
    """A processor at work."""

    @property
    def addresses(self) -> Sequence[str]:
        """Host and port of each receiver."""

    @property
    def telemetry_address(self) -> str:
        """Where it tells of itself; empty for nowhere."""

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
        print(f"{SAYS}: {error.strerror or error}", file=err)
        return FAILED
    except ValueError as error:
        print(f"{SAYS}: {error}", file=err)
        return USAGE
    _Session(running, console).run()
    return DONE


def deployed(arguments: Namespace, environ: Mapping[str, str], err: TextIO) -> Deployment | None:
    """What the command line asks for, or the file that it names; None after saying why not.

    Args:
        arguments: as `processor_arguments` declares them.
        environ: the variables of the process.
        err: for everything that is said.
    """
    asked = asked_of(arguments)
    try:
        if asked is not None:
            return _of_options(asked, environ)
        configured = load(arguments.config, environ)
    except ConfigError as error:  # it names the file, line by line
        print(error, file=err)
        return None
    except ValueError as error:
        print(f"{SAYS}: {error}", file=err)
        return None
    warn(arguments.config, configured.warnings, err)
    return configured.deployment


def _of_options(asked: Asked, environ: Mapping[str, str]) -> Deployment:
    """The options, with what they leave open.

    Raises:
        ValueError: one holds no address, or there is nowhere to keep a journal.
    """
    has_journal = not asked.tap if not asked.journal else asked.journal == "on"
    state = Path(asked.state) if asked.state else state_folder(environ)
    if has_journal and state is None:
        raise ValueError("there is no home to keep a journal in; name a folder with --state")
    to = _destination(asked.export)
    return Deployment(
        mode=Mode.TAP if asked.tap else Mode.INLINE,
        grpc=_listener(asked.listen),
        http=_listener(asked.http),
        spans=None if asked.tap else to,
        derived=to if asked.tap else None,
        settings=_settings(asked),
        journal=JournalSettings() if has_journal else None,
        state=state,
        telemetry=_listener(asked.telemetry),
        workers=asked.workers,
    )


def _listener(address: str) -> Listener | None:
    return Listener(str(_read(endpoints.listener, address))) if address else None


def _destination(address: str) -> Destination:
    endpoint = _read(endpoints.destination, address)
    return Destination(str(endpoint), tls=ClientTls() if endpoint.scheme == "https" else None)


def _read(read: Callable[[str], endpoints.Endpoint], address: str) -> endpoints.Endpoint:
    try:
        return read(address)
    except ValueError as error:
        raise ValueError(f"{address!r} {error}") from None


def _settings(asked: Asked) -> Settings:
    limits = replace(
        INLINE.window,
        idle_ns=round(asked.idle * SECOND_NS),
        hold_max_ns=round(asked.hold_max * SECOND_NS),
    )
    views = Views(
        lane=asked.lane == "on",
        jaeger_warnings=asked.jaeger_warnings,
        explained=Explained(asked.explain),
    )
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
        listening = " and ".join(running.addresses)
        self._say(f"Receiving OTLP on {listening}, sending to {running.destination}.")
        if running.telemetry_address:
            self._say(f"Metrics, health and books on {running.telemetry_address}.")
        if not running.is_connected(CONNECT_S):
            self._say(f"Nobody answers at {running.destination} yet; spans wait until it does.")
        if self.console.is_terminal:
            self._show_books()
        else:
            while not running.has_ended(STATUS_EVERY_S):
                pass

    def _show_books(self) -> None:
        with self.console.status("", refresh_per_second=1 / STATUS_EVERY_S) as status:
            while not self.running.has_ended(STATUS_EVERY_S):
                status.update(str(self.running.books()))

    def _tell_findings(self, found: Sequence[FindingCount]) -> None:
        """A line for each kind between two services; the series of a metric, at the end."""
        for row in found[:MOST_TOLD]:
            between = f"{row.caller or 'nobody'} -> {row.callee or 'nobody'}"
            self._say(f"found {row.total} x {row.kind.value}, {printable(between)}")
        if len(found) > MOST_TOLD:
            self._say(f"found {len(found) - MOST_TOLD} more kinds or pairs of services")

    def _say(self, words: str) -> None:
        with suppress(OSError):  # a log that is full, or a reader who has left: spans go on
            if self.console.is_terminal:
                self.console.print(words, markup=False, soft_wrap=True)
            else:  # without what a console keeps, to write it again and again
                print(words, file=self.console.file)
            self.console.file.flush()
