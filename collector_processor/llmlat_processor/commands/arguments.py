"""What commands may be asked for; imports nothing that is optional."""

from __future__ import annotations

import argparse
from typing import Final

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

CONFIG: Final = """\
examples:
  llmlat config check processor.yaml      what would run, or all that is wrong, with lines
  llmlat config check processor.yaml --json
  llmlat config schema > processor.schema.json       for an editor that completes and checks

exit codes: 0 it can be used, 1 it cannot, 2 wrong usage
"""


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `watch`."""
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


def add_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `show`."""
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


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `profile`."""
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


def add_clocks_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `clocks`."""
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


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `config` does, and with what."""
    errands = parser.add_subparsers(dest="errand", metavar="ERRAND", required=True)
    check = errands.add_parser("check", help="say what a file would run, or what is wrong with it")
    check.add_argument("file", metavar="FILE", help="the config file of a processor")
    check.add_argument("--json", action="store_true", help="JSON instead of text")
    errands.add_parser("schema", help="print the JSON Schema of config files")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _percentiles(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) <= 100 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers up to 100")
    return tuple(dict.fromkeys(int(part) for part in parts))
