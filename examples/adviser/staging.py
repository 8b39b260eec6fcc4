"""What both demos have in common: their options, a scratch folder, and an end to all of it.

Any interrupt stops them, and what fails is said in a line.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from children import INTERRUPTS, ChildError
from parties import ENGINES

__all__ = ["options_of", "staged"]

REPORT = Path("demo/report.html")


def options_of(description: str | None, examples: str) -> argparse.ArgumentParser:
    """A parser of the options that every demo has."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="llama.cpp", help="model server (%(default)s)"
    )
    parser.add_argument(
        "--report", type=Path, default=REPORT, metavar="FILE", help="the page (%(default)s)"
    )
    return parser


def staged(run: Callable[[Path, Console], None]) -> int:
    """Run a demo with a scratch folder and a console on stderr; returns the exit code."""
    console = Console(stderr=True)
    for each in INTERRUPTS:
        if signal.getsignal(each) != signal.SIG_IGN:  # as nohup asks
            signal.signal(each, _interrupted)
    try:
        with tempfile.TemporaryDirectory(prefix="llmlat-demo-") as folder:
            run(Path(folder), console)
    except ChildError as failure:
        console.print(f"error: {failure}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; everything is stopped.", style="yellow")
        return 130
    return 0


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C ends a program: by way of whatever has to be cleaned up."""
    raise KeyboardInterrupt
