"""Runs one of the examples against an emulated model server, and shows what `llmlat watch` sees.

All of it is on loopback, on free ports, and stopped again. Where OPENAI_BASE_URL is set, the model
server behind it is asked instead; OPENAI_MODEL names its model.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import dropwhile
from pathlib import Path

__all__ = ["main"]

LOOPBACK = "127.0.0.1"
HERE = Path(__file__).parent
ENGINE = HERE / "adviser" / "emulated_engine.py"
PROGRAMS = {
    "one-import": ("ask.py",),
    "manual-phases": ("planner.py",),
    "fastapi-app": ("service.py", "visitor.py"),
    "gateway-asgi": ("gateway.py", "caller.py"),
    "vllm": ("serve.py", "ask.py"),
    "transformers": ("write.py",),
}
"""The programs of each example in the order of their start; all but the last are servers.

A server says in its first line, as JSON, at which url it listens: EXAMPLE_URL of those after it.
"""
PYTHONS = {"transformers": "TRANSFORMERS_PYTHON"}
"""Variables that name the interpreter of an example that needs more than we have."""
HELP = """\
examples:
  %(prog)s one-import
  %(prog)s fastapi-app --json     the explained trace as a line of JSON

exit codes: that of the example, 130 interrupted, 141 nobody reads any more
"""
_GRACE_S = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one example; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `... | head`: the reader has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("example", choices=PROGRAMS)
    parser.add_argument("--json", action="store_true", help="JSON instead of the picture")
    return parser


def _run(options: argparse.Namespace) -> int:
    *servers, program = (HERE / options.example / name for name in PROGRAMS[options.example])
    with ExitStack() as stack:
        variables = _model(stack)
        watch = stack.enter_context(_watch(as_json=options.json))
        variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = _endpoint(watch)
        with ExitStack() as its_own:  # They end before the watch, and export what they have.
            for server in servers:
                process = its_own.enter_context(_running(*_service(server, variables)))
                variables["EXAMPLE_URL"] = _announced(process)["url"]
            with _running(*_service(program, variables), stdout=None) as process:
                code = process.wait()
        watch.terminate()  # It draws what it holds.
        sys.stdout.writelines(_explained(_lines(watch), as_json=options.json))
        sys.stdout.flush()
    return code


def _model(stack: ExitStack) -> dict[str, str]:
    """The variables by which a client finds the model server, started here if there is none."""
    if "OPENAI_BASE_URL" in os.environ:
        return {}
    engine = _announced(stack.enter_context(_running([sys.executable, str(ENGINE)], {})))
    return {
        "OPENAI_BASE_URL": f"{engine['url']}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": engine["model"],
    }


def _watch(*, as_json: bool) -> AbstractContextManager[subprocess.Popen[str]]:
    """`llmlat watch` on a free port, as wide as our terminal, its remarks among its output."""
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    form = ["--json"] if as_json else []
    width = str(shutil.get_terminal_size().columns)
    return _running(
        [llmlat, "watch", f"--listen={LOOPBACK}:0", *form],
        {"COLUMNS": width, "PYTHONIOENCODING": "utf-8"},
        stderr=subprocess.STDOUT,
    )


def _service(program: Path, variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """A program's command and variables; as a service it is named after itself."""
    python = os.environ.get(PYTHONS.get(program.parent.name, ""), sys.executable)
    return [python, str(program)], {**variables, "OTEL_SERVICE_NAME": program.stem}


@contextmanager
def _running(
    command: list[str],
    variables: Mapping[str, str],
    *,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """A process, its output read here unless told otherwise; ended when the block is left."""
    with subprocess.Popen(
        command,
        env={**_inherited(), **variables},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _inherited() -> dict[str, str]:
    """Our environment, without what would send telemetry elsewhere or loopback through a proxy."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return {**ours, "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    return iter(process.stdout.readline if process.stdout else str, "")


def _announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """What a server says of itself in its first line."""
    announced: dict[str, str] = json.loads(_first(process, r"\{.*\}"))
    return announced


def _endpoint(watch: subprocess.Popen[str]) -> str:
    """Where the watch tells apps to export to."""
    return _first(watch, r"(?<=OTEL_EXPORTER_OTLP_ENDPOINT=)\S+")


def _first(process: subprocess.Popen[str], pattern: str) -> str:
    """The first that a process says of what is looked for."""
    for line in _lines(process):
        if found := re.search(pattern, line):
            return found[0]
    raise SystemExit(f"{process.args!r} ended before it had said where it listens")


def _explained(lines: Iterable[str], *, as_json: bool) -> Iterator[str]:
    """What the watch says of traces, without the instructions above them."""
    if as_json:
        return (line for line in lines if line.startswith("{"))
    return dropwhile(lambda line: not line.startswith("trace "), lines)


if __name__ == "__main__":
    sys.exit(main())
