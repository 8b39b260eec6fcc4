"""Faults around the SDK: of providers, clocks and settings, and their being changed under way."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, cycle
from typing import Any, Final
from unittest import mock

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from tests.integration.seams import blocks, calls
from tests.integration.seams.network import Network
from tests.integration.seams.rewriting import InjectedError
from tests.integration.seams.sweep import Report, Trouble, differences
from tests.integration.seams.trials import Run, Trials

JUNK: Final = (
    " ",
    "junk",
    "-1",
    "nan",
    "inf",
    "1e9",
    "9" * 400,
    "0.",
    "ms",
    "1 hour",
    "\u2028",
    "é",
)

PROGRAMS: Final = (
    calls.full_read,
    calls.raw_stream,
    calls.streaming_stream,
    calls.helper,
    calls.dropped,
    calls.closed,
    calls.error_from_the_wire,
    calls.retried,
    calls.refused,
    blocks.agent_with_calls,
    blocks.blocks,
    blocks.functions,
    blocks.generators,
    blocks.tasks,
)
RUNS: Final = tuple(Run(program, is_async) for program in PROGRAMS for is_async in (False, True))

Break = Callable[[Trials], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is broken or changed for the length of a run.

    Attributes:
        name: What it is.
        enter: Breaks it until it is left.
        is_counted: Whether it makes our own work fail.
        ends_spans: Whether spans can still be ended.
        runs: What is run under it.
    """

    name: str
    enter: Break
    is_counted: bool = False
    ends_spans: bool = True
    runs: tuple[Run, ...] = RUNS


def _fail(*_: object, **__: object) -> Any:
    raise InjectedError


class _Processor(SpanProcessor):
    """The application's own, broken at one end."""

    def __init__(self, name: str) -> None:
        setattr(self, name, _fail)


class _Exporter(SpanExporter):
    def __init__(self, export: Callable[..., SpanExportResult]) -> None:
        self.export = export  # type: ignore[method-assign]


def _processor(make: Callable[[], SpanProcessor], trials: Trials) -> Any:
    return _done(trials.tracers.provider.add_span_processor, make())


def _done(work: Callable[..., object], *args: object) -> AbstractContextManager[object]:
    work(*args)
    return ExitStack()


def _broken(name: str, trials: Trials) -> Any:
    """A part of the tracer provider, each of whose methods fails."""
    return mock.patch.object(trials.tracers.provider, name, mock.Mock(side_effect=InjectedError))


def _broken_methods(name: str, *methods: str) -> Break:
    def enter(trials: Trials) -> Any:
        part = mock.Mock(**{f"{method}.side_effect": InjectedError for method in methods})
        return mock.patch.object(trials.tracers.provider, name, part)

    return enter


def _no_tracer(trials: Trials) -> Any:
    return mock.patch.object(trials.tracers, "get_tracer", _fail)


@contextmanager
def _no_provider_made(trials: Trials) -> Iterator[None]:
    """The application has set none, and ours fails."""
    runtime = trials.module("core.runtime")
    with (
        mock.patch.object(trace, "_TRACER_PROVIDER", None),
        mock.patch.object(runtime, "_make_provider", _fail),
    ):
        yield


def _meters(**broken: Any) -> Break:
    def enter(trials: Trials) -> Any:
        return mock.patch.object(trials.meters, "provider", mock.Mock(**broken))

    return enter


def _clock(fails: Callable[[int], bool]) -> Break:
    """A clock some of whose readings fail, by their number."""

    def enter(trials: Trials) -> Any:
        readings = count(1)

        def read() -> int:
            if fails(next(readings)):
                raise InjectedError
            return time.monotonic_ns()

        runtime = trials.module("core.runtime")
        clock = partial(trials.module("core.clock").Clock, read)
        return mock.patch.object(runtime, "Clock", clock)

    return enter


def _on_read(work: Callable[[Trials], Callable[[], object]]) -> Break:
    """Something is done each time that the application reads from the network."""

    def enter(trials: Trials) -> Any:
        return mock.patch.object(Network, "on_read", staticmethod(work(trials)))

    return enter


def _swap_providers(trials: Trials) -> Callable[[], object]:
    other = TracerProvider(resource=Resource({}), shutdown_on_exit=False)
    other.add_span_processor(trials.tracers.spans)
    providers = cycle((other, None, trials.tracers))

    def swap() -> None:
        trace._TRACER_PROVIDER = next(providers)

    return swap


@contextmanager
def _swapped_providers(trials: Trials) -> Iterator[None]:
    with _on_read(_swap_providers)(trials):
        yield
    trace._TRACER_PROVIDER = trials.tracers


def _forget_runtime(trials: Trials) -> Callable[[], object]:
    return partial(setattr, trials.module("core.runtime"), "_current", None)


def _take_back(trials: Trials) -> Callable[[], object]:
    return trials.sdk.uninstrument  # type: ignore[no-any-return]


def _take_back_and_forth(trials: Trials) -> Callable[[], object]:
    turns = cycle((trials.sdk.uninstrument, trials.sdk.instrument))

    def turn() -> None:
        next(turns)()

    return turn


def _shut_down(trials: Trials) -> Callable[[], object]:
    return trials.tracers.provider.shutdown


def _set(name: str, value: str, trials: Trials) -> Any:
    return mock.patch.dict(os.environ, {name: value})


def _settings(trials: Trials) -> Iterator[Condition]:
    """Each variable that the SDK reads, with each value that it cannot use."""
    variable = re.compile(r"LLMLAT_[A-Z_]+")
    values = vars(trials.module("settings")).values()
    for name in sorted(
        {each for each in values if isinstance(each, str) and variable.fullmatch(each)}
    ):
        for junk in JUNK:
            yield Condition(f"{name}={junk[:9]!r}", partial(_set, name, junk), runs=RUNS[:2])


def conditions(trials: Trials) -> Iterator[Condition]:
    """All of them."""
    for name in ("on_start", "on_end"):
        make = partial(_Processor, name)
        yield Condition(f"a processor fails {name}", partial(_processor, make), True, False)
    for name, export in (("raises", _fail), ("fails", lambda _: SpanExportResult.FAILURE)):
        made = partial(SimpleSpanProcessor, _Exporter(export))
        yield Condition(f"the exporter {name}", partial(_processor, made))
    sampler = _broken_methods("sampler", "should_sample")
    yield Condition("the sampler fails", sampler, True)
    ids = _broken_methods("id_generator", "generate_span_id", "generate_trace_id")
    yield Condition("no ids are made", ids, True)
    off = partial(mock.patch.object, attribute="sampler", new=ALWAYS_OFF)
    yield Condition("nothing is sampled", lambda trials: off(trials.tracers.provider))
    yield Condition("there is no tracer", _no_tracer, True)
    yield Condition("no provider can be made", _no_provider_made, True, runs=RUNS[:8])
    histogram = {
        "get_meter.return_value.create_histogram.return_value.record.side_effect": InjectedError
    }
    yield Condition("there is no meter", _meters(**{"get_meter.side_effect": InjectedError}), True)
    yield Condition("histograms fail", _meters(**histogram), True)
    create = {"get_meter.return_value.create_histogram.side_effect": InjectedError}
    yield Condition("there are no histograms", _meters(**create), True)
    for first in (1, 2, 4, 8, 16):
        fails = partial(int.__le__, first)
        yield Condition(f"the clock fails from reading {first} on", _clock(fails), True, False)
    yield Condition("each third reading fails", _clock(lambda n: n % 3 == 0), True, False)
    yield Condition("providers are swapped", _swapped_providers)
    yield Condition("the runtime is renewed", _on_read(_forget_runtime))
    yield Condition("uninstrumented under way", _on_read(_take_back))
    yield Condition("instrumented under way", _on_read(_take_back_and_forth))
    yield Condition("the provider is shut down", _on_read(_shut_down), False, False)
    yield from _settings(trials)


class Outside:
    """Runs the programs under each condition."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self.report = Report()

    def try_out(self, condition: Condition) -> None:
        """Run the programs under a condition."""
        self.report.seams += 1
        faults = 0
        for run in condition.runs:
            stack = ExitStack()
            prepare = partial(self._enter, stack, condition)
            seen = self._trials.run(run, prepare, stack.close)
            faults += seen.faults
            seen.notes = [each for each in seen.notes if not _is_said_of_it(each, condition)]
            if not condition.ends_spans:
                seen.left = [each for each in seen.left if not each.endswith("has not ended")]
            for what in differences(seen, self._trials.plain[run]):
                self.report.troubles.append(Trouble(condition.name, str(run), 0, what))
        self.report.faults += faults
        if condition.is_counted is not bool(faults):
            self.report.troubles.append(
                Trouble(condition.name, "all", 0, f"{faults} faults counted")
            )

    def _enter(self, stack: ExitStack, condition: Condition) -> None:
        stack.enter_context(condition.enter(self._trials))


def _is_said_of_it(note: str, condition: Condition) -> bool:
    """OpenTelemetry says what is wrong with an exporter; we say what is wrong with a setting."""
    name = condition.name.partition("=")[0]
    return note.startswith("log: opentelemetry.") or note.startswith(f"log: llmlat_otel: {name}=")


def main() -> None:
    """Try out every condition."""
    trials = Trials()
    gc.collect()
    gc.freeze()
    outside = Outside(trials)
    for condition in conditions(trials):
        outside.try_out(condition)
    json.dump(asdict(outside.report), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
