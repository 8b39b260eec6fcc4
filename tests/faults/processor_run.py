"""`llmlat processor --config FILE` as a process that may be killed, and what it tells of itself."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Final

import yaml

from llmlat_processor.model.status import Status

PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.05

_SIDES: Final = re.compile(r"(\d+) spans received.*?, (\d+) added: (\d+) sent(.*?); \d+ traces")
_REQUESTS: Final = re.compile(r", \d+ (?:damaged|[\w ]+ requests)")
_COUNT: Final = re.compile(r", (\d+) ")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run came to its end.

    Attributes:
        code: with which it did.
        books: its last line about them.
    """

    code: int
    books: str

    @property
    def balances(self) -> bool:
        """Whether the last line accounts for every span."""
        told = _SIDES.search(self.books)
        assert told, f"no books: {self.books!r}"
        received, added, sent = map(int, told.group(1, 2, 3))
        gone = _REQUESTS.sub("", told.group(4))
        return received + added == sent + sum(map(int, _COUNT.findall(gone)))


class Site:
    """Where a processor lives: its ports and its folder outlive its process."""

    def __init__(self, folder: Path, destination: str, **more: object) -> None:
        """Nothing runs yet.

        Args:
            folder: for its config and its state.
            destination: where spans are sent to; an http:// URL is OTLP over HTTP.
            more: keys of the config, over those that are set here.
        """
        self.folder = folder
        self.grpc, self.http, self.telemetry = (f"127.0.0.1:{free_port()}" for _ in range(3))
        protocol = "http" if destination.startswith("http") else "grpc"
        self.config: dict[str, object] = {
            "receivers": {"grpc": {"endpoint": self.grpc}, "http": {"endpoint": self.http}},
            "destinations": {"spans": {"endpoint": destination, "protocol": protocol}},
            "window": {"idle": "300ms", "grace": "600ms", "hold_max": "3s"},
            "state": {"directory": str(folder / "state")},
            "telemetry": {"endpoint": self.telemetry},
            **more,
        }

    @contextmanager
    def running(self, environ: Mapping[str, str] | None = None) -> Iterator[Processor]:
        """One run, from its first word to its end, whatever that is."""
        file = self.folder / "processor.yaml"
        file.write_text(yaml.safe_dump(self.config))
        processor = Processor(self, file, environ or {})
        try:
            processor.wait_for_words("books on")
            yield processor
        finally:
            processor.kill_all()


class Processor:
    """One process."""

    def __init__(self, site: Site, file: Path, environ: Mapping[str, str]) -> None:
        self.site = site
        self._process = subprocess.Popen(
            [Path(sys.executable).with_name("llmlat"), "processor", "--config", file],
            env={**os.environ, **environ},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.orphans: list[int] = []
        self._lines: list[str] = []
        self._has_said_all = False
        self._changed = Condition()
        self._thread = Thread(target=self._listen)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the process, or with workers of their parent."""
        return self._process.pid

    @property
    def said(self) -> str:
        """All of it so far."""
        return "\n".join(self._lines)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def wait_for_words(self, words: str) -> None:
        with self._changed:
            heard = self._changed.wait_for(
                lambda: words in self.said or self._has_said_all, PATIENCE_S
            )
        assert heard, self.said
        assert words in self.said, self.said

    def fetch(self, path: str) -> tuple[int, str]:
        """What is told at a path of its telemetry."""
        try:
            url = f"http://{self.site.telemetry}{path}"
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def status(self) -> Status:
        """What it is at; its books balance whenever they are asked for."""
        told = Status.of(json.loads(self.fetch("/status")[1]))
        assert told.books.balances, told.books
        return told

    @property
    def is_ready(self) -> bool:
        return self.fetch("/readyz")[0] == 200

    @property
    def peak_bytes(self) -> int:
        """Most memory that the process ever had."""
        told = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", told)
        assert found
        return int(found.group(1)) << 10

    def workers(self) -> list[int]:
        """The processes that share its work."""
        return workers_of(self.pid)

    def wait_until(self, true: Callable[[Status], bool], patience_s: float = PATIENCE_S) -> Status:
        """Until its status is so."""
        last: list[Status] = []

        def look() -> bool:
            last[:] = [self.status()]
            return true(last[0])

        wait_until(look, lambda: f"{last}\n{self.said}", patience_s)
        return last[0]

    def wait_until_empty(self, *, keeps_skeletons: bool = False) -> Status:
        """Until it holds nothing any more, in memory or on disk but what a root may still need."""

        def is_empty(told: Status) -> bool:
            kept = told.journal.batches if told.journal and not keeps_skeletons else 0
            return not told.books.held + told.books.queued + kept

        return self.wait_until(is_empty)

    def kill(self) -> None:
        """As the kernel does where memory runs out; its workers learn of it by themselves."""
        if not self.has_ended:
            self.orphans = self.workers()
        self._process.kill()
        self._process.wait()

    def kill_all(self) -> None:
        """The same to its workers; no process is left behind."""
        self.kill()
        for pid in filter(is_alive, self.orphans):
            os.kill(pid, signal.SIGKILL)
        self._thread.join()

    def end(self, patience_s: float = PATIENCE_S) -> Ended:
        """As an operator does."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(patience_s)
        self._thread.join()
        books = [line for line in self._lines if " spans received" in line]
        assert books, self.said
        ended = Ended(code, books[-1])
        assert ended.balances, ended
        return ended

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in stream:
                with self._changed:
                    self._lines.append(line.rstrip())
                    self._changed.notify_all()
        with self._changed:
            self._has_said_all = True
            self._changed.notify_all()


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def pause(how_long_s: float) -> None:
    """What a sender does between two requests."""
    Event().wait(how_long_s)


def wait_until(
    true: Callable[[], bool],
    why_not: Callable[[], object] = str,
    patience_s: float = PATIENCE_S,
) -> None:
    """Look again and again; fails after so long."""
    for _ in range(round(patience_s / LOOK_S)):
        if true():
            return
        pause(LOOK_S)
    assert true(), why_not()


def workers_of(pid: int) -> list[int]:
    """The processes that share the work of a processor."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return [child for child in children if "spawn_main" in _command_of(child)]


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is no corpse."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
