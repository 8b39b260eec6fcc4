"""Builds the real Collector and Jaeger that tests and the demo use, once, into a cache folder.

What is pinned in collector/ and jaeger/ is named in each program's name, so that a change of it
builds another one and no change builds nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from backends import PINS, cache_folder, pinned

PACKAGES: Final = {
    "collector": ".",
    "jaeger": "github.com/jaegertracing/jaeger/cmd/jaeger",
}
"""What is built for each peer, as named from its folder."""

_FLAGS: Final = ("-trimpath", "-ldflags=-s -w")
_ENVIRONMENT: Final = {
    **os.environ,
    **{"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"},
}
_USUAL_GO: Final = "/usr/local/go/bin/go"  # in the PATH of login shells only


class BuildError(Exception):
    """A peer could not be built; the message says why, and what to do about it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Build what is missing; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--go", metavar="PROGRAM", help="the go to build with (default: found)")
    go = parser.parse_args(argv).go
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        version = _version(go := _go(go))
        with alone(cache_folder()):
            for peer in PACKAGES:
                _provide(peer, go, version)
    except BuildError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; nothing half-built is left.", file=sys.stderr)
        return 130
    return 0


def _go(named: str | None) -> str:
    found = shutil.which(named or "go") or (None if named else shutil.which(_USUAL_GO))
    if found is None:
        what = f"there is no '{named}'" if named else "there is no go in PATH"
        raise BuildError(f"{what}. {_fix(_oldest())}")
    return found


def _version(go: str) -> str:
    """Such as `go1.26.8`."""
    command = [go, "env", "GOVERSION"]
    asked = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    version = asked.stdout.strip()
    if not re.fullmatch(r"go[\w.-]+", version):
        raise BuildError(f"'{go}' does not say its version: {asked.stderr.strip()}")
    oldest = _oldest()
    if _numbers(version) < _numbers(oldest):
        raise BuildError(f"'{go}' is {version}, older than Go {oldest}. {_fix(oldest)}")
    return version


def _oldest() -> str:
    """The newest Go that one of the peers asks for."""
    texts = [(PINS / peer / "go.mod").read_text(encoding="utf-8") for peer in PACKAGES]
    asked = [line.split()[1] for text in texts for line in text.splitlines() if line[:3] == "go "]
    return max(asked, key=_numbers)


def _numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)]


def _fix(oldest: str) -> str:
    return f"Install Go {oldest} or newer from https://go.dev/dl/, or name it: make peers GO=..."


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Build into the folder alone: what others left half-built there is nobody's."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another build ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(".*.partial"):
            remove(left)
        yield


def _provide(peer: str, go: str, version: str) -> None:
    program = cache_folder() / f"{peer}-{pinned(peer)}-{version}"
    if program.exists():
        print(f"{peer}: already there: {program}", flush=True)
        return
    print(f"{peer}: building with {version}; minutes, the first time ...", flush=True)
    started = time.monotonic()
    partial = program.with_name(f".{program.name}.partial")
    try:
        _build(peer, go, partial)
        partial.rename(program)
    finally:
        partial.unlink(missing_ok=True)
    size, took = program.stat().st_size / 1e6, time.monotonic() - started
    print(f"{peer}: built in {took:.0f} s, {size:.0f} MB: {program}", flush=True)


def _build(peer: str, go: str, output: Path) -> None:
    command = [go, "build", *_FLAGS, "-o", str(output), PACKAGES[peer]]
    if not completed(command, PINS / peer, _ENVIRONMENT):
        raise BuildError(f"{peer} could not be built; go's own words are above")


def completed(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> bool:
    """Run a program in a folder, to its end even where we are interrupted; whether it went well."""
    running = None
    try:
        with _undisturbed():
            running = subprocess.Popen(command, cwd=folder, env=environment)
        return running.wait() == 0
    except KeyboardInterrupt:
        if running:
            running.send_signal(signal.SIGINT)  # then it removes its own temporary files
            running.wait()
        raise


def remove(path: Path) -> None:
    """A file or a folder, if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let interrupts wait: nothing must start without our knowing of it."""
    held: list[int] = []
    both = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(each, lambda number, _: held.append(number)) for each in both]
    try:
        yield
    finally:
        for each, handler in zip(both, handlers, strict=True):
            signal.signal(each, handler)
    for number in held[:1]:
        signal.raise_signal(number)


if __name__ == "__main__":
    sys.exit(main())
