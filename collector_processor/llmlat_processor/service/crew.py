"""The workers as their parent sees them: started, asked, started again, ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Lock
from typing import Final

from llmlat_processor.edges.worker_link import Answer, WorkerLink
from llmlat_processor.metrics.own import Usage
from llmlat_processor.model.status import Books, Status
from llmlat_processor.service.worker import Ask, Report, deployment_of, work
from llmlat_processor.settings import Deployment

START_S: Final = 60.0
"""How long a worker may take to start, most of it to open a journal that has grown."""

ANSWER_S: Final = 1.0
SILENT_S: Final = 5.0
"""From then on nothing is handed to one that owes an answer: it would only be waited for."""

HANGS_S: Final = 60.0
"""From then on it is taken for one that never will."""

OVER_S: Final = 10.0
"""How much longer than what it has to send may take it a worker has for its end."""

_logger = logging.getLogger("llmlat_processor")


class WorkerError(OSError):
    """A worker could not be started; the message says why."""


class CrewMember:
    """One worker: a process, a pipe to it, and a socket for its spans."""

    def __init__(self, whole: Deployment, number: int, folder: Path) -> None:
        """Start it; `wait` sees it come up."""
        self.name: Final = f"worker-{number}"
        self.restarts = 0
        self._socket = folder / f"{number}.sock"
        self._deployment = deployment_of(whole, number, self._socket)
        self._lock = Lock()
        self._link = WorkerLink(f"unix:{self._socket}")
        self._last = Report(Status(Books()), (), (), Usage(0, 0))
        self._is_up = False
        self._is_asked = False  # and has not answered yet
        self._asked_s = 0.0
        self._process, self._pipe = self._started()

    def wait(self) -> None:
        """Wait until it is up.

        Raises:
            WorkerError: it has not come up; it is gone then.
        """
        try:
            self._last = self._received(START_S)
        except BaseException:
            self.kill()
            raise
        self._is_up = True
        self._is_asked = False

    @property
    def silent(self) -> Sequence[str]:
        """Its destinations where nobody answered as it was started."""
        return self._last.silent

    @property
    def is_up(self) -> bool:
        """Whether it has come up, answers, and has not ended."""
        return self._is_up and self._process.is_alive() and self._silent_s() < SILENT_S

    @property
    def not_ready(self) -> str:
        """Why it takes nothing now, as far as is known; empty where it does. Never waits."""
        if self.is_up:
            return self._last.status.not_ready
        return f"{self.name} {'does not answer' if self._is_up else 'is being started'}"

    def send(self, content: bytes) -> Future[Answer]:
        """Hand spans over; the answer comes when they are taken, or are not."""
        return self._link.send(content)

    def report(self, ask: Ask = Ask.STATUS) -> Report:
        """What it is at, or was a moment ago where it does not answer at once.

        Args:
            ask: whether metrics and findings are asked for as well; else they are the last known.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._ask(ask)
            finally:
                self._lock.release()
        return self._last

    def _ask(self, ask: Ask) -> None:
        """One question at a time: what comes late is the answer to the next one."""
        try:
            if not self._is_asked:
                self._pipe.send(ask)
            elif not self._pipe.poll():
                return
            self._note_asked()
            told = self._received(ANSWER_S)
        except OSError:
            return  # it is being started again, or has ended, or is busy
        self._is_asked = False
        last = self._last
        if not told.is_whole:
            told = replace(told, families=last.families, found=last.found)
        self._last = replace(told, silent=last.silent)

    def _note_asked(self) -> None:
        if not self._is_asked:
            self._asked_s = time.monotonic()
            self._is_asked = True

    def _silent_s(self) -> float:
        """For how long it has owed an answer; one that nobody has read yet is not owed."""
        with suppress(OSError):  # the pipe is closed: it is being started again, or at its end
            if self._is_asked and not self._pipe.poll():
                return time.monotonic() - self._asked_s
        return 0.0

    def look_after(self) -> None:
        """Start it again where it has died or hangs; its journal has what it had accepted.

        Raises:
            WorkerError: it has not come up.
        """
        with self._lock:
            is_alive = self._process.is_alive()
            if is_alive and self._silent_s() < HANGS_S:
                return
            what = f"has ended with {self._process.exitcode}"
            if is_alive:
                what = f"has not answered for {HANGS_S:.0f} s"
            _logger.warning("%s %s and is started again", self.name, what)
            self._is_up = False
            self.kill()
            self.restarts += 1
            self._process, self._pipe = self._started()
            self.wait()

    def ask_to_stop(self) -> None:
        """Have it send what it holds, and end."""
        with self._lock:
            try:
                self._pipe.send(Ask.STOP)
            except OSError:
                _logger.warning("%s has ended before", self.name)

    def join(self, timeout_s: float) -> None:
        """Wait for its end; what does not come to it is killed, and its journal has the rest."""
        with self._lock:
            try:
                if self._is_asked:
                    self._received(timeout_s)
                self._last = self._received(timeout_s)
            except OSError:
                _logger.warning("%s has not told of its end", self.name)
            self._process.join(OVER_S)
            self.kill()
        self._link.close()

    def kill(self) -> None:
        """End it at once, if it has not ended by itself."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._pipe.close()

    def _started(self) -> tuple[SpawnProcess, Connection]:
        context = get_context("spawn")  # no thread and no connection of ours goes with it
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(self._deployment, theirs), name=self.name)
        self._socket.unlink(missing_ok=True)
        process.start()
        theirs.close()
        return process, ours

    def _received(self, timeout_s: float) -> Report:
        """The next report; an OSError where none comes."""
        try:
            if not self._pipe.poll(timeout_s):
                raise WorkerError(f"{self.name} has not answered within {timeout_s:.0f} s")
            told = self._pipe.recv()
        except EOFError as error:
            raise WorkerError(f"{self.name} has ended instead of answering") from error
        if not isinstance(told, Report):
            raise WorkerError(f"{self.name}: {told}")
        return told


def crew(whole: Deployment, folder: Path) -> Sequence[CrewMember]:
    """All workers of a deployment, started side by side.

    Raises:
        WorkerError: one of them has not come up; none is left then.
    """
    members: list[CrewMember] = []
    try:
        for number in range(whole.workers):
            members.append(CrewMember(whole, number, folder))
        for member in members:
            member.wait()
    except BaseException:
        for member in members:
            member.kill()
        raise
    return members
