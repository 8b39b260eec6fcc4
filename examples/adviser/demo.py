"""One compound request on a real engine, explained: where did its time go?

Starts a model server, a gateway before it, three busy colleagues that keep it loaded, an adviser
app, and `llmlat processor` between them and `llmlat watch`, all on loopback; shows the waterfall of
the adviser's request and what dominated, writes the same as a page, and stops them all.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from children import Children
from parties import (
    adviser_asks,
    busy,
    start_engine,
    start_gateway,
    start_processor,
    start_watch,
)
from picture import picture_in, verdict
from progress import Progress
from staging import options_of, staged

__all__ = ["main"]

EXAMPLES = """\
examples:
  %(prog)s                      a real 270M model under llama.cpp
  %(prog)s --engine emulated    no model: a scheduler that behaves like an engine's
  %(prog)s --json               the explained trace as one line of JSON
  %(prog)s --keep               leave the servers up, to point your own app at them

exit codes: 0 shown, 1 something failed, 2 wrong usage, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    options = _parser().parse_args(argv)
    return staged(partial(_run, options))


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__, EXAMPLES)
    parser.add_argument("--json", action="store_true", help="JSON instead of the picture")
    parser.add_argument("--keep", action="store_true", help="go on until Ctrl-C")
    return parser


def _run(options: argparse.Namespace, folder: Path, console: Console) -> None:
    with Children(folder) as children:
        with Progress(console) as progress:
            progress.step(f"starting the model server ({options.engine})")
            server = start_engine(children, options.engine)
            progress.step("starting llmlat watch, and llmlat processor before it")
            options.report.parent.mkdir(parents=True, exist_ok=True)
            asked = ["--traces=1", f"--html={options.report}", *_format(options)]
            watch, viewer = start_watch(children, "watch", asked)
            telemetry = start_processor(children, viewer)
            progress.step("starting the gateway")
            client = start_gateway(children, server, telemetry)
            progress.step("starting three busy colleagues, and the adviser beside them")
            with busy(children, server):
                adviser_asks(children, client, telemetry, progress.step)
            progress.step("waiting until the trace is complete")
            watch.finished()
        _show(watch.output(), options)
        if options.keep:
            _keep(children, client, options, console)


def _show(output: str, options: argparse.Namespace) -> None:
    picture = output if options.json else picture_in(output)
    sys.stdout.write(picture)
    if not options.json:
        out = Console(highlight=False, soft_wrap=True)
        for line in verdict(picture):
            out.print(f"[bold]{escape(line)}[/bold]")
        out.print(f"The same as a page, with what would have helped: {escape(str(options.report))}")
    sys.stdout.flush()


def _keep(
    children: Children, client: Mapping[str, str], options: argparse.Namespace, console: Console
) -> None:
    """Watch whatever else is sent, until Ctrl-C."""
    watch, viewer = start_watch(children, "watch-on", _format(options))
    console.print("\nThe servers go on until Ctrl-C. For an app of your own, with one import:")
    otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{viewer}", "OTEL_SERVICE_NAME": "my-app"}
    for name, value in {**client, **otlp}.items():
        console.print(f"  export {name}={value}", highlight=False, soft_wrap=True)
    watch.finished(lambda line: print(line, flush=True), patience_s=math.inf)


def _format(options: argparse.Namespace) -> list[str]:
    return ["--json"] if options.json else []


if __name__ == "__main__":
    sys.exit(main())
