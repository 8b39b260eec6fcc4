"""The command line `llmlat`: what may be asked, and who answers it."""

# ruff: noqa: PLC0415 - a command's imports wait for it: help is fast, and works without the extra
from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points, version
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from llmlat_processor.commands import arguments as declared
from llmlat_processor.commands import processor_arguments
from llmlat_processor.garbage import relax_collector
from llmlat_processor.jaeger_address import Address

if TYPE_CHECKING:
    from llmlat_processor.commands.processor import Running
    from llmlat_processor.settings import Deployment

DISTRIBUTION: Final = "llmlat-otel"
COMMANDS: Final = "llmlat_commands"
"""The entry points of commands that others add: functions of the arguments after the name, whose
exit code is returned, and the first line of whose docstring is the summary."""
OPTIONAL: Final = frozenset(
    {
        "google",
        "grpc",
        "httptools",
        "orjson",
        "prometheus_client",
        "pydantic",
        "rich",
        "urllib3",
        "uvicorn",
        "yaml",
    }
)

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130

STATUS_S: Final = 10.0
"""How long a processor may take to tell of itself."""

OVERVIEW: Final = """\
start here:
  llmlat watch                            then run an app with `import llmlat_otel.auto`
  llmlat show traces.jsonl                the same from a file
  llmlat processor --export HOST:PORT     the same for everybody, in Jaeger, Tempo, ...
  llmlat config check processor.yaml      whether a processor can run by a file
  llmlat profile timelines.jsonl          a report on many requests
  llmlat clocks traces.jsonl              how far the clocks of machines are apart, over time
  llmlat doctor                           what is timed in an app, and where its spans go

`llmlat COMMAND --help` has examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; None takes the process's own.

    Returns:
        The exit code. Wrong usage raises SystemExit(2), as argparse does.
    """
    asked = list(sys.argv[1:] if argv is None else argv)
    if asked[:2] == ["processor", "status"]:
        return _answered("processor status", lambda: _status(asked[2:]))
    added = {each.name: each for each in entry_points(group=COMMANDS)}
    if asked and asked[0] in added:
        return _answered(asked[0], lambda: int(added[asked[0]].load()(asked[1:])))
    parser = _parser(added, with_summaries=asked[:1] in ([], ["-h"], ["--help"]))
    arguments = parser.parse_args(asked)
    if arguments.command is None:
        parser.print_help()
        return DONE
    answers = {
        "watch": _watch,
        "processor": _process,
        "config": _config,
        "show": _show,
        "profile": _profile,
        "clocks": _clocks,
    }
    return _answered(arguments.command, lambda: answers[arguments.command](arguments))


def _answered(command: str, answer: Callable[[], int]) -> int:
    """The exit code of a command, whatever becomes of it."""
    try:
        code = answer()
        _flush()
    except ModuleNotFoundError as error:
        return _explain_missing(command, error)
    except BrokenPipeError:  # `llmlat show ... | head`: the reader has enough
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:  # a full disk, a terminal that is gone
        _discard_output()
        print(f"llmlat {command}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _flush() -> None:
    """What cannot be written is told here, and not by the interpreter as it ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _discard_output() -> None:
    """What is left in the buffer has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(added: Mapping[str, EntryPoint], *, with_summaries: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="llmlat",
        description="Where did the time of an LLM request go?",
        epilog=OVERVIEW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"llmlat {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    declared.add_watch_arguments(
        _command(commands, "watch", "receive spans and draw each trace", declared.WATCH)
    )
    processor_arguments.add_arguments(
        _command(commands, "processor", processor_arguments.SUMMARY, processor_arguments.EPILOG)
    )
    declared.add_config_arguments(
        _command(commands, "config", "check a processor's config file", declared.CONFIG)
    )
    declared.add_show_arguments(
        _command(commands, "show", "explain the traces in files", declared.SHOW)
    )
    declared.add_profile_arguments(
        _command(commands, "profile", "report on request timelines", declared.PROFILE)
    )
    declared.add_clocks_arguments(
        _command(commands, "clocks", "compare clocks over many traces", declared.CLOCKS)
    )
    for name, entry_point in added.items():
        # A summary is the command's own, which is not loaded where nobody reads it.
        commands.add_parser(name, help=_summary(entry_point) if with_summaries else None)
    return parser


def _summary(entry_point: EntryPoint) -> str:
    first, _, _ = (entry_point.load().__doc__ or "").partition("\n")
    return first[:1].lower() + first[1:].rstrip(".")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    epilog: str,
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary.capitalize()}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _watch(arguments: argparse.Namespace) -> int:
    from llmlat_processor import service
    from llmlat_processor.commands.watch import watch

    _stay()
    return watch(
        arguments.listen,
        service.watch,
        limit=arguments.traces,
        as_json=arguments.json,
        out=sys.stdout,
        err=sys.stderr,
        html=arguments.html,
    )


def _stay() -> None:
    """For what receives: it lives for long, and ends when it is told to."""
    relax_collector()
    # A parent that ends us gets the same orderly end, with the books, as Ctrl-C at a terminal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # a terminal that is gone, no nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    # gRPC writes a line for each handshake that fails, in either direction: we tell of them now and
    # then, with what to do.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def _process(arguments: argparse.Namespace) -> int:
    from llmlat_processor.commands.processor import deployed, forward

    _stay()
    deployment = deployed(arguments, os.environ, sys.stderr)
    if deployment is None:
        return USAGE
    return forward(lambda: _start(deployment), sys.stderr)


def _start(deployment: Deployment) -> Running:
    """Begin what a deployment says."""
    from llmlat_processor import service

    return service.run(deployment)


def _status(options: Sequence[str]) -> int:
    from llmlat_processor.commands import status

    parser = argparse.ArgumentParser(
        prog="llmlat processor status",
        description=f"{status.SUMMARY.capitalize()}.",
        epilog=status.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    status.add_arguments(parser)
    arguments = parser.parse_args(options)
    fetch = partial(_fetch_from_processor, arguments.token)
    return status.status(arguments, fetch, sys.stdout, sys.stderr, time.sleep)


def _fetch_from_processor(token: str, url: str) -> bytes:
    """What a processor tells of itself."""
    from urllib.request import ProxyHandler, Request, build_opener

    from llmlat_processor.config.endpoints import is_loopback

    # Proxies of the environment are for others than this machine.
    direct = [ProxyHandler({})] if is_loopback(urlsplit(url).hostname or "") else []
    request = Request(url)
    if token:  # it is for the place that it was given for, wherever that sends us
        request.add_unredirected_header("authorization", f"Bearer {token}")
    with build_opener(*direct).open(request, timeout=STATUS_S) as answer:
        content: bytes = answer.read()
    return content


def _config(arguments: argparse.Namespace) -> int:
    from llmlat_processor.commands.config import check, write_schema

    if arguments.errand == "schema":
        return write_schema(sys.stdout)
    return check(arguments.file, os.environ, sys.stdout, sys.stderr, as_json=arguments.json)


def _show(arguments: argparse.Namespace) -> int:
    from llmlat_processor.commands.progress import Progress
    from llmlat_processor.commands.show import Request, show
    from llmlat_processor.commands.what_if import parse

    try:
        suppositions = [parse(text) for text in arguments.what_if]
    except ValueError as error:
        print(f"llmlat show: {error}", file=sys.stderr)
        return USAGE
    relax_collector()
    request = Request(
        files=arguments.files,
        trace=arguments.trace.lower(),
        suppositions=suppositions,
        as_json=arguments.json,
        everything=arguments.all,
        html=arguments.html,
        perfetto=arguments.perfetto,
    )
    return show(request, sys.stdout, Progress(sys.stderr, time.monotonic), _fetch)


def _fetch(address: Address) -> Iterable[bytes]:
    from llmlat_processor import service

    return service.fetch(address)


def _profile(arguments: argparse.Namespace) -> int:
    from llmlat_processor.commands.profile import profile_demo, profile_file
    from llmlat_processor.commands.progress import Progress

    as_json, percentiles = arguments.json, arguments.percentiles
    if arguments.demo:
        return profile_demo(as_json=as_json, percentiles=percentiles, out=sys.stdout)
    return profile_file(
        arguments.file,
        as_json=as_json,
        percentiles=percentiles,
        out=sys.stdout,
        progress=Progress(sys.stderr, time.monotonic),
    )


def _clocks(arguments: argparse.Namespace) -> int:
    from llmlat_processor.commands.clocks import Request, clocks
    from llmlat_processor.commands.progress import Progress

    relax_collector()
    request = Request(
        files=arguments.files,
        state=arguments.state,
        window_ns=arguments.window * 10**9,
        as_json=arguments.json,
        everything=arguments.all,
    )
    return clocks(request, sys.stdout, Progress(sys.stderr, time.monotonic), _fetch)


def _explain_missing(command: str, error: ModuleNotFoundError) -> int:
    """Name the extra that holds an optional package; anything else missing is a fault of ours."""
    package = (error.name or "").partition(".")[0]
    if package not in OPTIONAL:
        raise error
    print(
        f"llmlat {command} needs {package}, which is not installed here:\n"
        f"  pip install '{DISTRIBUTION}[processor]'",
        file=sys.stderr,
    )
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
