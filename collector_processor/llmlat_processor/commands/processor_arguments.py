"""What `llmlat processor` may be asked for; imports nothing that is optional."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from typing import Final

SUMMARY: Final = "forward spans, and add to each trace where its time went"

EPILOG: Final = """\
examples:
  llmlat processor --export 127.0.0.1:4319              from an app, on to Jaeger, Tempo, ...
  llmlat processor --listen :4317 --export :4319 --lane off
  llmlat processor --export 127.0.0.1:4319 --jaeger-warnings
  llmlat processor --tap --export 127.0.0.1:4319        of a copy: only lanes are sent
  llmlat processor --config processor.yaml              all of it in a file, which
                                                        `llmlat config check` looks through
  llmlat processor status --endpoint 127.0.0.1:8889     what a running one is at

behind a collector: its exporter otlp_grpc sends to --listen, and --export is a second otlp
receiver of it, in a pipeline of its own

each span goes on with the bytes it came with; attributes stand behind them, and the critical path
is a service of its own, "~critical path". A trace is sent when its root has ended and nothing has
come for --idle seconds (6 where a call still waits for its callee's spans), at the latest
--hold-max seconds after its first span. Ctrl-C and SIGTERM send what is held.

exit codes: 0 ended from outside, 1 the address cannot be had, 2 wrong usage
"""

LONGEST_S: Final = 10**9
"""Thirty years: what is longer is no time that anybody waits."""
MOST_WORKERS: Final = 1_000

LISTEN: Final = "127.0.0.1:4317"
_SWITCH: Final = ("on", "off")


@dataclass(frozen=True, slots=True)
class Asked:
    """The options, each with what it is where it is not given.

    Attributes:
        export: where to send to; always given.
        listen: where OTLP is received over gRPC.
        http: the same over HTTP; empty for not at all.
        tap: True sends only what is derived.
        lane: whether lanes are added: on, off.
        jaeger_warnings: True adds findings as warnings.
        explain: which traces are explained: genai, all.
        idle: quiet time in seconds after which a trace goes.
        hold_max: longest that a span is held, in seconds.
        state: folder of what is kept; empty for the usual one.
        journal: on, off; empty is on, but in a tap.
        telemetry: where the processor tells of itself; empty for nowhere.
        workers: processes that share the work.
    """

    export: str
    listen: str = LISTEN
    http: str = ""
    tap: bool = False
    lane: str = "on"
    jaeger_warnings: bool = False
    explain: str = "genai"
    idle: float = 2.0
    hold_max: float = 60.0
    state: str = ""
    journal: str = ""
    telemetry: str = ""
    workers: int = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; what is not given leaves nothing behind."""
    parser.set_defaults(config="", refuse=parser.error)
    parser.argument_default = argparse.SUPPRESS
    parser.add_argument(
        "--config", metavar="FILE", help="a YAML file that says it all, in place of other options"
    )
    _add_places(parser)
    _add_views(parser)
    _add_limits(parser)


def asked_of(arguments: argparse.Namespace) -> Asked | None:
    """The options; None where a config file stands in their place.

    Raises:
        SystemExit: they do not go together; argparse has said so.
    """
    there = vars(arguments)
    given = {field.name: there[field.name] for field in fields(Asked) if field.name in there}
    if arguments.config:
        if given:
            written = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            arguments.refuse(f"--config says it all: write what {written} says into the file")
        return None
    if "export" not in given:
        arguments.refuse("one of --config and --export is required")
    asked = Asked(**given)
    if asked.tap and asked.journal == "on":
        arguments.refuse("--journal on: a tap keeps none, since the spans are safe elsewhere")
    return asked


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help=f"where to receive OTLP over gRPC (default: {LISTEN}; port 0 is a free one)",
    )
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="where to receive OTLP over HTTP as well"
    )
    parser.add_argument(
        "--export",
        metavar="HOST:PORT",
        help="where to send to: an OTLP receiver over gRPC, which need not be there yet; or a URL",
    )
    parser.add_argument(
        "--tap", action="store_true", help="take a copy of spans, and send only what is derived"
    )
    parser.add_argument(
        "--telemetry", metavar="HOST:PORT", help="where to tell of health, metrics and the books"
    )


def _add_views(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lane",
        choices=_SWITCH,
        help="the critical path as spans of its own, about 12 a trace (default: on)",
    )
    parser.add_argument(
        "--jaeger-warnings",
        action="store_true",
        help="show findings as warnings of their spans, in the form that Jaeger knows",
    )
    parser.add_argument(
        "--explain",
        choices=("genai", "all"),
        help="traces in which something speaks of GenAI or phases, or all (default: genai)",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--idle",
        type=_seconds,
        metavar="SECONDS",
        help="how long nothing must come before a trace is sent (default: 2)",
    )
    parser.add_argument(
        "--hold-max",
        type=_seconds,
        metavar="SECONDS",
        help="longest that a span is held (default: 60)",
    )
    parser.add_argument(
        "--state", metavar="DIR", help="folder of the journal (default: that of the user's state)"
    )
    parser.add_argument(
        "--journal",
        choices=_SWITCH,
        help="keep on disk what is not sent yet (default: on; a tap keeps none)",
    )
    parser.add_argument(
        "--workers", type=_workers, metavar="N", help="processes that share the work (default: 1)"
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 to {MOST_WORKERS:,}")
    return int(text)
