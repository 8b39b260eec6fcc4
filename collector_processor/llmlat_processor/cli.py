"""The command line `llmlat`: what may be asked, and who answers it."""

# ruff: noqa: PLC0415 - a command's imports wait for it: help is fast, and works without the extra
from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points, version
from typing import Final

from llmlat_processor.commands import processor_arguments
from llmlat_processor.jaeger_address import Address

DISTRIBUTION: Final = "llmlat-otel"
COMMANDS: Final = "llmlat_commands"
"""The entry points of commands that others add: functions of the arguments after the name, whose
exit code is returned, and the first line of whose docstring is the summary."""
OPTIONAL: Final = frozenset({"google", "grpc", "orjson", "rich"})

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130

OVERVIEW: Final = """\
start here:
  llmlat watch                            then run an app with `import llmlat_otel.auto`
  llmlat show traces.jsonl                the same from a file
  llmlat processor --export HOST:PORT     the same for everybody, in Jaeger, Tempo, ...
  llmlat profile timelines.jsonl          a report on many requests
  llmlat clocks traces.jsonl              how far the clocks of machines are apart, over time
  llmlat doctor                           what is timed in an app, and where its spans go

`llmlat COMMAND --help` has examples.
"""

WATCH: Final = """\
examples:
  llmlat watch                            receives on 127.0.0.1:4317, draws each trace
  llmlat watch --listen 127.0.0.1:0       on a free port
  llmlat watch --traces 1 --json          one trace as a line of JSON, then ends
  llmlat watch --html report.html         and the last trace as a page, at the end

in the app:
  export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317
  import llmlat_otel.auto
"""

SHOW: Final = """\
files hold OTLP as JSON or protobuf, the lines of the collector's file exporter, or what Jaeger's
UI downloads as JSON; - is stdin. In their place: the address of a trace in Jaeger's UI

examples:
  llmlat show traces.jsonl
  llmlat show traces.jsonl --trace 4bf9   traces whose id starts with 4bf9
  llmlat show traces.jsonl --html report.html
  llmlat show traces.jsonl --perfetto t.json      then drop t.json on https://ui.perfetto.dev
  llmlat show jaeger://127.0.0.1:16686/4bf92f3577b34da6a3ce929d0e0e4736
  llmlat show traces.jsonl --what-if queue=0.5 --what-if decode=-720ms
  llmlat show traces.jsonl --what-if tool:get_orders=0.5
  llmlat show traces.jsonl --what-if prefill@00f067aa=0.75
  cat traces.pb | llmlat show - --json

a what-if names a phase, of every operation or of one (:NAME, @SPAN ID), or an operation
(@SPAN ID); it changes it by a factor or an amount (+20ms, -1.5s)

exit codes: 0 shown, 1 nothing could be shown, 2 wrong usage or a what-if without an answer
"""

PROFILE: Final = """\
one JSON object a line: request_id, prompt_tokens, output_tokens, and in milliseconds
client_send_ms, gateway_arrival_ms, queue_enter_ms, prefill_start_ms, prefill_end_ms,
first_token_server_ms, first_token_client_ms, last_token_client_ms

examples:
  llmlat profile timelines.jsonl
  llmlat profile timelines.jsonl --percentiles 50,90,99 --json
  llmlat profile --demo                   a growing queue, and a record that is refused

exit codes: 0 reported, 2 wrong usage, or refused: a file with a defect gives no figures
"""

CLOCKS: Final = """\
files are those that llmlat show reads; - is stdin. All their traces together bound how far the
clocks of each two machines are apart, window by window, and show where one was stepped

examples:
  llmlat clocks traces.jsonl
  llmlat clocks monday.jsonl tuesday.jsonl --all
  llmlat clocks traces.jsonl --state clocks.state     goes on from there, and keeps it there
  llmlat clocks traces.jsonl --window 30 --json

exit codes: 0 shown, 1 no two clocks could be compared, or the state is not kept, 2 wrong usage
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: arguments without the program's name; None takes the process's own.

    Returns:
        The exit code. Wrong usage raises SystemExit(2), as argparse does.
    """
    asked = list(sys.argv[1:] if argv is None else argv)
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
    _watch_arguments(_command(commands, "watch", "receive spans and draw each trace", WATCH))
    processor_arguments.add_arguments(
        _command(commands, "processor", processor_arguments.SUMMARY, processor_arguments.EPILOG)
    )
    _show_arguments(_command(commands, "show", "explain the traces in files", SHOW))
    _profile_arguments(_command(commands, "profile", "report on request timelines", PROFILE))
    _clocks_arguments(_command(commands, "clocks", "compare clocks over many traces", CLOCKS))
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


def _watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        default="127.0.0.1:4317",
        metavar="HOST:PORT",
        help="where to receive OTLP over gRPC (default: %(default)s; port 0 is a free one)",
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each trace")
    parser.add_argument(
        "--traces", type=_at_least_one, metavar="N", help="end after N traces, with exit code 0"
    )
    parser.add_argument("--html", default="", metavar="OUT", help="the last trace as a page")


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="spans, or where Jaeger has them")
    parser.add_argument("--trace", default="", metavar="ID", help="only trace ids that start so")
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="TARGET=CHANGE",
        help="what another duration would have changed; may be given several times",
    )
    parser.add_argument("--all", action="store_true", help="leave nothing out of the pictures")
    parser.add_argument(
        "--html", default="", metavar="OUT", help="one page instead; - is standard output"
    )
    parser.add_argument(
        "--perfetto", default="", metavar="OUT", help="one file for ui.perfetto.dev instead"
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each trace")


def _profile_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", metavar="FILE", help="timelines; - is standard input")
    source.add_argument("--demo", action="store_true", help="a population made for showing")
    parser.add_argument(
        "--percentiles",
        type=_percentiles,
        default=(50, 95, 99),
        metavar="P,P,...",
        help="which percentiles to take (default: 50,95,99)",
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def _clocks_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="spans, or where Jaeger has them")
    parser.add_argument(
        "--state",
        default="",
        metavar="FILE",
        help="what earlier runs learned is read from it, and all that is known then kept in it",
    )
    parser.add_argument(
        "--window",
        type=_at_least_one,
        default=120,
        metavar="SECONDS",
        help="for how long a clock may keep its rate (default: %(default)s)",
    )
    parser.add_argument("--all", action="store_true", help="leave nothing out of the picture")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")


def relax_collector() -> None:
    """Collect garbage less often: a trace is many small objects that all live until it is done.

    With the defaults a third of the time goes into looking through them again and again.
    """
    gc.set_threshold(100_000, 20, 50)


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


def _process(arguments: argparse.Namespace) -> int:
    from llmlat_processor import service
    from llmlat_processor.commands.processor import forward, settings_of

    _stay()
    settings = settings_of(arguments)
    return forward(
        lambda: service.forward(arguments.listen, arguments.export, settings=settings), sys.stderr
    )


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


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _percentiles(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) <= 100 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers up to 100")
    return tuple(dict.fromkeys(int(part) for part in parts))


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
