"""The file in which a running process shows how it goes (`LLMLAT_HEALTH`)."""

from __future__ import annotations

import _thread
import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from llmlat_otel.core.guard import guarded
from llmlat_otel.leaving import when_leaving

INTERVAL_S: Final = 5.0
FIRST_S: Final = 0.5
"""The first time comes sooner, so that a start can be watched."""

Report = dict[str, object]


class HealthFile:
    """Writes a report now and then, from a thread of its own, and a last time at the exit.

    A thread of ours, and not the exporter's, since that one hangs when a collector does, and is the
    application's where the provider is.

    Args:
        path: A file; or a folder (one that exists, or ends in a slash) for a file per process.
        report: Makes the report.
    """

    def __init__(self, path: str, report: Callable[[], Report]) -> None:
        self._path = path
        self._report = report
        self._over = threading.Event()
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Write it from now on."""
        when_leaving(self.end)
        # Not by `threading`, whose threads carry the current span of whoever starts them.
        _thread.start_new_thread(self._serve, ())

    def end(self) -> None:
        """Write it a last time."""
        if not self._over.is_set():
            self._over.set()
            self._write({"has_ended": True})

    def stop(self) -> None:
        """Write it no more."""
        self._over.set()

    def _serve(self) -> None:
        delay_s = FIRST_S
        while not self._over.wait(delay_s):
            guarded("health", self._write, {})
            delay_s = INTERVAL_S

    def _write(self, more: Mapping[str, object]) -> None:
        """Whole or not at all: whoever reads it meanwhile sees the one before."""
        with self._lock:
            if self._over.is_set() and not more:
                return
            path = _file(self._path)
            text = json.dumps({**self._report(), "interval": INTERVAL_S, **more}, indent=2)
            new = path.with_name(f".{path.name}.{os.getpid()}.new")
            new.write_text(f"{text}\n", encoding="utf-8")
            new.replace(path)


def _file(path: str) -> Path:
    folder = Path(path)
    if path.endswith("/"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder / f"llmlat-{os.getpid()}.json" if folder.is_dir() else folder
