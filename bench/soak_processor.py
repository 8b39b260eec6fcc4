"""The processor does not grow, lose or lag: one at work for minutes, at 10,000 spans a second.

    sender ── OTLP over gRPC ──> llmlat processor ── OTLP over gRPC ──> noting end
                                        ^
                                        └── /status and /proc, each second

All three are processes of their own. The processor has everything on: journal, lanes, metrics.
Ctrl-C ends the load early; what was sent until then still has to come out, and is reported.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import machine
from bench.processes import Measured, ProcessError, free_address, started
from bench.progress import Progress
from bench.report import Cell, Goal, Report, Table
from bench.soaking_ledger import Seen, Sent, Tally, tally
from bench.soaking_looks import (
    ALLOWED_SHARE,
    FEWEST,
    MIB,
    QUARTERS,
    Course,
    Look,
    resident_mib,
    share,
)
from llmlat_processor.model.status import Status

SUMMARY: Final = "the processor neither grows, loses nor lags over 10 minutes at 10,000 spans/s"

MINUTES: Final = 10.0
QUICK_MINUTES: Final = 2.0
RATE: Final = 10_000

_DELAY_LIMIT_S: Final = 2.5
_CPU_LIMIT_PERCENT: Final = 20
_GROWTH_LIMIT_MIB: Final = 8
_RATE_SHARE: Final = 0.98
_TELLS_WITHIN_S: Final = 30
_LEAVES_WITHIN_S: Final = 90
_RESTS_S: Final = 5
_EVERY_S: Final = 1.0
_BOOKS: Final = " spans received"
_REMEMBERED_SHARE: Final = 0.2
_MOST_REMEMBERED_S: Final = 600

_CONFIG: Final = """\
mode: inline
receivers: {{grpc: {{endpoint: "{listen}"}}}}
destinations: {{spans: {{endpoint: "{send}"}}}}
window: {{tombstones: {remembered_s}s}}
state: {{directory: "{state}"}}
telemetry: {{endpoint: "{telemetry}"}}
"""


@dataclass(frozen=True, slots=True)
class Amount:
    """For how long, and how much: spans per second."""

    minutes: float = MINUTES
    rate: int = RATE

    @property
    def seconds(self) -> float:
        """How long the load lasts."""
        return 60 * self.minutes

    @property
    def remembered_s(self) -> int:
        """How long traces are remembered: the default, unless it were most of the time."""
        return min(_MOST_REMEMBERED_S, max(1, round(_REMEMBERED_SHARE * self.seconds)))


@dataclass(frozen=True, slots=True)
class Stand:
    """Where all of them are: addresses, and a folder for what they write."""

    folder: Path
    listen: str = field(default_factory=free_address)
    send: str = field(default_factory=free_address)
    telemetry: str = field(default_factory=free_address)

    @property
    def sent(self) -> Path:
        """The ledger of the sender."""
        return self.folder / "sent.json"

    @property
    def seen(self) -> Path:
        """The ledger of the end."""
        return self.folder / "seen.json"

    @property
    def state(self) -> Path:
        """Where the processor keeps its journal."""
        return self.folder / "state"

    @property
    def log(self) -> Path:
        """What the processor says."""
        return self.folder / "processor.log"

    def processor(self, amount: Amount) -> list[str]:
        """The command that starts the processor."""
        config = self.folder / "processor.yaml"
        config.write_text(
            _CONFIG.format(
                listen=self.listen,
                send=self.send,
                telemetry=self.telemetry,
                state=self.state,
                remembered_s=amount.remembered_s,
            ),
            encoding="utf-8",
        )
        return [str(Path(sys.executable).with_name("llmlat")), "processor", f"--config={config}"]


@dataclass(frozen=True, slots=True)
class Soaked:
    """What a soak has found.

    Attributes:
        fresh: before anything was sent.
        loaded: while it was.
        left: from then on.
        tally: what was sent and what has come.
        sent: what the sender says.
        said: the books of the processor, as it told them at its end.
    """

    fresh: Look
    loaded: Sequence[Look]
    left: Sequence[Look]
    tally: Tally
    sent: Sent
    said: str

    @property
    def unbalanced(self) -> int:
        """At how many looks the books did not balance."""
        return sum(not look.balances for look in (self.fresh, *self.loaded, *self.left))


def run(progress: Progress, *, quick: bool) -> Report:
    """Soak.

    Args:
        progress: is told each second.
        quick: whether two minutes will do.
    """
    amount = Amount(QUICK_MINUTES if quick else MINUTES)
    return report(soak(amount, progress), amount)


def soak(amount: Amount, progress: Progress) -> Soaked:
    """Put a processor under load, and look at it.

    Raises:
        ProcessError: one of the processes ended, or did not do its part.
    """
    with tempfile.TemporaryDirectory() as where, ExitStack() as stack:
        stand = Stand(Path(where))
        end = stack.enter_context(started(_end("note", stand.send, stand.seen), _log(stand, "end")))
        end.listening(stand.send)
        process = stack.enter_context(started(stand.processor(amount), stand.log))
        process.listening(stand.listen)
        process.listening(stand.telemetry)
        fresh = look(process, stand)
        loaded = list(_under_load(process, stand, amount, progress))
        left = list(_coming_out(process, stand, progress))
        process.stop()
        end.stop()
        sent = Sent.read(stand.sent)
        progress.note("")
        return Soaked(fresh, loaded, left, tally(sent, Seen.read(stand.seen)), sent, _said(stand))


def look(process: Measured, stand: Stand) -> Look:
    """What the processor is at."""
    try:
        with urllib.request.urlopen(
            f"http://{stand.telemetry}/status", timeout=_TELLS_WITHIN_S
        ) as answer:
            status = Status.of(json.load(answer))
    except OSError as error:
        words = stand.log.read_text(encoding="utf-8", errors="replace")[-2_000:]
        raise ProcessError(f"the processor does not tell its status: {error}\n{words}") from error
    files = stand.state.glob("journal*")
    return Look(
        at_s=time.monotonic(),
        resident_bytes=process.resident_bytes(),
        cpu_s=process.cpu_s(),
        journal_bytes=sum(file.stat().st_size for file in files),
        held_traces=status.held_traces,
        held_bytes=status.held_bytes + status.waiting_bytes,
        kept_batches=0 if status.journal is None else status.journal.batches,
        received=status.books.received,
        under_way=status.books.held + status.books.queued,
        balances=status.books.balances,
    )


def _under_load(
    process: Measured, stand: Stand, amount: Amount, progress: Progress
) -> Iterator[Look]:
    words = ("send", stand.listen, str(amount.rate), str(amount.seconds), stand.sent)
    with started(_end(*words), _log(stand, "sender")) as sender:
        begin_s = time.monotonic()
        try:
            while not sender.is_over:
                time.sleep(_EVERY_S)
                now = look(process, stand)
                progress.note(_words(now, now.at_s - begin_s, amount))
                yield now
        except KeyboardInterrupt:
            progress.note("soak: what was sent has still to come out ...")
            sender.stop()
        sender.ended()


def _coming_out(process: Measured, stand: Stand, progress: Progress) -> Iterator[Look]:
    """Until nothing is left, and a little longer."""
    begin_s = time.monotonic()
    rests_s = None
    while time.monotonic() - begin_s < _LEAVES_WITHIN_S:
        now = look(process, stand)
        yield now
        progress.note(f"soak: {now.under_way:,} spans have still to come out")
        rests_s = rests_s or (now.at_s + _RESTS_S if now.is_idle else None)
        if rests_s is not None and now.at_s >= rests_s:
            return
        time.sleep(_EVERY_S)


def _said(stand: Stand) -> str:
    lines = stand.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in reversed(lines) if _BOOKS in line), "")


def _end(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "bench.soaking_ends", *map(str, words)]


def _log(stand: Stand, name: str) -> Path:
    return stand.folder / f"{name}.log"


def _words(now: Look, elapsed_s: float, amount: Amount) -> str:
    return (
        f"soak: {elapsed_s:,.0f} s of {amount.seconds:,.0f}, {now.received:,} spans,"
        f" {now.resident_bytes / MIB:,.0f} MiB, {now.under_way:,} spans under way; Ctrl-C ends it"
    )


# ── What is said of it ───────────────────────────────────────────────────────────────────────────


def report(soaked: Soaked, amount: Amount) -> Report:
    """Tables and goals."""
    if len(soaked.loaded) < FEWEST:
        return Report("soak-processor", [], [], ["It ended before there was anything to measure."])
    course = Course(soaked.loaded)
    tables = [_over_time(course), _totals(soaked, course)]
    return Report("soak-processor", tables, goals(soaked, course, amount), [soaked.said])


def goals(soaked: Soaked, course: Course, amount: Amount) -> Sequence[Goal]:
    """What is to be reached; CPU in proportion to the spans that are sent."""
    counted = soaked.tally
    cpu_limit = _CPU_LIMIT_PERCENT * amount.rate / RATE
    sent_per_s = counted.sent / soaked.sent.seconds
    return [
        Goal("soak_rate", sent_per_s, _RATE_SHARE * amount.rate, "/s", at_least=True),
        Goal("soak_lost", counted.lost, 0, ""),
        Goal("soak_delay_p95", counted.delay_s(95), _DELAY_LIMIT_S, "s"),
        Goal("soak_growth", course.growth_mib, _GROWTH_LIMIT_MIB, "MiB"),
        Goal("soak_cpu", 100 * course.cpu_share, cpu_limit, "%"),
        Goal("soak_unbalanced", soaked.unbalanced, 0, ""),
        Goal("soak_left_over", soaked.left[-1].left_over, 0, ""),
    ]


def _over_time(course: Course) -> Table:
    rows: list[list[Cell]] = []
    for number in range(QUARTERS):
        quarter = course.quarter(number)
        rows.append(
            [
                f"quarter {number + 1}",
                resident_mib(quarter),
                100 * share(quarter),
                max(one.journal_bytes for one in quarter) / MIB,
                max(one.under_way for one in quarter),
            ]
        )
    columns = ["", "memory, MiB", "CPU, %", "journal, MiB", "spans under way"]
    return Table("medians of memory, means of CPU, the most of the others", columns, rows)


def _totals(soaked: Soaked, course: Course) -> Table:
    counted, last = soaked.tally, soaked.left[-1]
    rows: list[list[Cell]] = [
        ["traces sent", counted.traces],
        ["spans sent", counted.sent],
        ["spans that came out", counted.received],
        ["spans lost", counted.lost],
        ["spans that came twice", counted.repeated],
        ["spans of lanes", counted.lanes],
        ["requests sent again", soaked.sent.again],
        ["seconds of load", soaked.sent.seconds],
        ["delay, s: p50", counted.delay_s(50)],
        ["p95", counted.delay_s(95)],
        ["p99", counted.delay_s(99)],
        ["the longest", counted.delay_s(100)],
        ["memory, MiB: before it", soaked.fresh.resident_bytes / MIB],
        ["at the most", max(one.resident_bytes for one in soaked.loaded) / MIB],
        [f"last quarter beyond {ALLOWED_SHARE:g} times the second", course.growth_mib],
        ["slope in 10 minutes", course.slope_mib],
        ["at rest after it", last.resident_bytes / MIB],
        ["journal at rest, MiB", last.journal_bytes / MIB],
    ]
    return Table("all of it", ["", "in all"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak as it was asked for; the exit status."""
    asked = _parser().parse_args(arguments)
    amount = Amount(asked.minutes, asked.rate)
    if not asked.json:
        print(f"{machine.cpu()}, load {machine.load():.1f}", flush=True)
    made = report(soak(amount, Progress()), amount)
    print(json.dumps(made.as_json(), indent=1) if asked.json else f"\n{made}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak_processor",
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}. Ctrl-C ends it early, with a report.",
        epilog="The exit status is 0 whether the goals are met or not.",
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="default: %(default)s")
    parser.add_argument(
        "--rate", type=int, default=RATE, help="spans per second (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
