"""One compound request on a real engine, explained: where did its time go?

Starts a model server, three busy colleagues that keep it loaded, `llmlat watch` and an adviser app,
all on loopback; shows the waterfall of the adviser's request and what dominated; stops them all.
"""

from __future__ import annotations

import argparse
import math
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape

from children import INTERRUPTS, Child, ChildError, Children
from picture import picture_in, verdict
from progress import Progress

__all__ = ["main"]

HERE = Path(__file__).parent
ENGINES = {"llama.cpp": "llama_server.py", "emulated": "emulated_engine.py"}
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
    console = Console(stderr=True)
    for each in INTERRUPTS:
        if signal.getsignal(each) != signal.SIG_IGN:  # as nohup asks
            signal.signal(each, _interrupted)
    try:
        with tempfile.TemporaryDirectory(prefix="llmlat-demo-") as folder:
            _run(options, Path(folder), console)
    except ChildError as failure:
        console.print(f"error: {failure}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; everything is stopped.", style="yellow")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="llama.cpp", help="model server (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of the picture")
    parser.add_argument("--keep", action="store_true", help="go on until Ctrl-C")
    return parser


def _run(options: argparse.Namespace, folder: Path, console: Console) -> None:
    with Children(folder) as children:
        with Progress(console) as progress:
            progress.step(f"starting the model server ({options.engine})")
            client = _start_engine(children, options.engine)
            progress.step("starting llmlat watch")
            watch, otlp = _start_watch(children, "watch", ["--traces=1", *_format(options)])
            progress.step("starting three busy colleagues, and the adviser beside them")
            colleagues = children.start("colleagues", _script("colleagues.py"), **client)
            children.start("adviser", _script("app.py"), **client, **otlp).finished(progress.step)
            colleagues.still_running()  # else the adviser had no queue to wait in
            colleagues.stop()
            progress.step("waiting until the trace is complete")
            watch.finished()
        _show(watch.output(), options)
        if options.keep:
            _keep(children, client, options, console)


def _start_engine(children: Children, engine: str) -> dict[str, str]:
    """Start the model server and wait until it answers; the environment of its clients."""
    server = children.start("model-server", _script(ENGINES[engine]))
    announced = server.announcement()
    url = announced["url"]
    server.healthy(f"{url}/health")
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "ADVISER_MODEL": announced["model"],
    }


def _start_watch(
    children: Children, name: str, arguments: Sequence[str]
) -> tuple[Child, dict[str, str]]:
    """Start `llmlat watch` and wait until it listens; the environment of an app to be watched."""
    address = f"127.0.0.1:{_free_port()}"
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    watch = children.start(
        name, [llmlat, "watch", f"--listen={address}", *arguments], **_terminal()
    )
    watch.listening(address)
    return watch, {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}",
        "OTEL_SERVICE_NAME": "adviser",
    }


def _show(output: str, options: argparse.Namespace) -> None:
    picture = output if options.json else picture_in(output)
    sys.stdout.write(picture)
    if not options.json:
        out = Console(highlight=False, soft_wrap=True)
        for line in verdict(picture):
            out.print(f"[bold]{escape(line)}[/bold]")
    sys.stdout.flush()


def _keep(
    children: Children, client: dict[str, str], options: argparse.Namespace, console: Console
) -> None:
    """Watch whatever else is sent, until Ctrl-C."""
    watch, otlp = _start_watch(children, "watch-on", _format(options))
    console.print("\nThe servers go on until Ctrl-C. For an app of your own, with one import:")
    for name, value in {**client, **otlp, "OTEL_SERVICE_NAME": "my-app"}.items():
        console.print(f"  export {name}={value}", highlight=False, soft_wrap=True)
    watch.finished(lambda line: print(line, flush=True), patience_s=math.inf)


def _script(name: str) -> list[str]:
    return [sys.executable, str(HERE / name)]


def _format(options: argparse.Namespace) -> list[str]:
    return ["--json"] if options.json else []


def _terminal() -> dict[str, str]:
    """What makes a process that writes to a file draw as it would on our standard output."""
    console = Console()
    coloured = (
        {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}
        if console.is_terminal and not console.no_color
        else {}
    )
    encoding = sys.stdout.encoding or "utf-8"
    return {"COLUMNS": str(console.width), "PYTHONIOENCODING": encoding, **coloured}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C ends a program: by way of whatever has to be cleaned up."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
