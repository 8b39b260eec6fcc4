"""What `llmlat processor` may be asked for; imports nothing that is optional."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "forward spans, and add to each trace where its time went"

EPILOG: Final = """\
examples:
  llmlat processor --export 127.0.0.1:4319              from an app, on to Jaeger, Tempo, ...
  llmlat processor --listen :4317 --export :4319 --lane off
  llmlat processor --export 127.0.0.1:4319 --jaeger-warnings

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--listen",
        default="127.0.0.1:4317",
        metavar="HOST:PORT",
        help="where to receive OTLP over gRPC (default: %(default)s; port 0 is a free one)",
    )
    parser.add_argument(
        "--export",
        required=True,
        metavar="HOST:PORT",
        help="where to send to: an OTLP receiver over gRPC, which need not be there yet",
    )
    parser.add_argument(
        "--lane",
        choices=("on", "off"),
        default="on",
        help="the critical path as spans of its own, about 12 a trace (default: %(default)s)",
    )
    parser.add_argument(
        "--jaeger-warnings",
        action="store_true",
        help="show findings as warnings of their spans, in the form that Jaeger knows",
    )
    parser.add_argument(
        "--idle",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="how long nothing must come before a trace is sent (default: 2)",
    )
    parser.add_argument(
        "--hold-max",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="longest that a span is held (default: 60)",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value
