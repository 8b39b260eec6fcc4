"""Trials: one program run with the SDK, with or without a fault in it, and all that came of it."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from tests.integration.seams import apis, blocks, calls, engines, gateways, rewriting
from tests.integration.seams.app import App, Program

THREADS_DEADLINE_S = 1.0
SPANS_DEADLINE_S = 0.1
PROGRAM_DEADLINE_S = 2.0

# Which phases are long enough for a span of their own must not be for the machine to say.
PHASE_MIN, ALL_ARE_SPANS, NONE_IS_A_SPAN = "LLMLAT_PHASE_MIN", "0ms", "3600s"

# What is looked at only where that is asked for.
ENGINE_STEPS = "LLMLAT_ENGINE_STEPS"


@dataclass(frozen=True, slots=True)
class Run:
    """A program, and which client it uses."""

    program: Program
    is_async: bool

    def __str__(self) -> str:
        return f"{self.program.__name__}[{'async' if self.is_async else 'sync'}]"


RUNS = tuple(
    Run(program, is_async)
    for module in (calls, apis, blocks, gateways, engines)
    for program in module.PROGRAMS
    for is_async in (False, True)
)


@dataclass(slots=True)
class Seen:
    """What came of a run.

    Attributes:
        said: The application's transcript.
        notes: Log records from WARNING on, warnings, exceptions that nobody caught.
        left: What should not be there afterwards.
        spans: Names of the spans that have ended; how many phases are long enough may vary.
        faults: How many were counted.
    """

    said: str
    notes: list[str]
    left: list[str] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)
    faults: int = 0


class Spans(SpanProcessor):
    """Spans that have been started and not ended, and the names of those that have."""

    def __init__(self) -> None:
        self.pending: dict[int, str] = {}
        self.ended: list[str] = []

    def on_start(self, span: Span, parent_context: object = None) -> None:
        context = span.get_span_context()
        self.pending[context.span_id if context else 0] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        self.pending.pop(context.span_id if context else 0, None)
        self.ended.append(span.name)


class Tracers(trace.TracerProvider):
    """The provider that the application has set; behind it another one for each run."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.spans = Spans()
        self.provider = TracerProvider(resource=Resource({}), shutdown_on_exit=False)
        self.provider.add_span_processor(self.spans)

    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        return self.provider.get_tracer(*args, **kwargs)

    def add_span_processor(self, processor: SpanProcessor) -> None:
        self.provider.add_span_processor(processor)


class Meters(metrics.MeterProvider):
    """The same for metrics."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        readers = [InMemoryMetricReader()]
        self.provider = MeterProvider(readers, resource=Resource({}), shutdown_on_exit=False)

    def get_meter(self, *args: Any, **kwargs: Any) -> metrics.Meter:
        return self.provider.get_meter(*args, **kwargs)


class Nothing:
    """What stands for the SDK where there is none."""

    def nothing(self) -> None: ...

    instrument = uninstrument = first_content = nothing

    def timed(self, *_: Any, **__: Any) -> Any:
        return _Untimed()

    agent = tool = retrieval = phase = timed

    def health(self) -> dict[str, object]:
        return {}

    def flush(self, timeout_s: float) -> bool:
        return True

    async def flush_async(self, timeout_s: float) -> bool:
        return True


class _Untimed:
    def __enter__(self) -> trace.Span:
        return trace.INVALID_SPAN

    def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> trace.Span:
        return trace.INVALID_SPAN

    async def __aexit__(self, *_: object) -> None: ...

    def __call__(self, function: Any) -> Any:
        return function


class Noticed(logging.Handler):
    """What a program's users or operators would notice beside its results."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: list[str] = []
        logging.getLogger().addHandler(self)
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: self.notes.append(f"warning: {message!r}")
        threading.excepthook = lambda args: self.notes.append(f"thread: {args.exc_value!r}")
        sys.unraisablehook = lambda args: self.notes.append(f"unraisable: {args.exc_value!r}")

    def emit(self, record: logging.LogRecord) -> None:
        self.notes.append(f"log: {record.name}: {record.getMessage()}")


class Trials:
    """Runs programs with the SDK, which is imported in its rewritten form.

    Attributes:
        plain: What comes of each run without the SDK.
        sdk: Its public functions.
        tracers: The tracer provider that the application has set.
        meters: Its meter provider.
    """

    def __init__(self) -> None:
        self._noticed = Noticed()
        self.tracers = Tracers()
        self.meters = Meters()
        trace.set_tracer_provider(self.tracers)
        metrics.set_meter_provider(self.meters)
        self.plain = {run: self._told(run, Nothing()) for run in RUNS}
        rewriting.rewrite()
        self.sdk = importlib.import_module("llmlat_otel")
        self._modules = {
            name: module for name, module in sys.modules.items() if name.startswith("llmlat_otel")
        }
        values = [each for module in self._modules.values() for each in vars(module).values()]
        self._caches = [each.cache_clear for each in values if hasattr(each, "cache_clear")]
        self._originals = self._library()

    def module(self, name: str) -> Any:
        """A module of the SDK."""
        return self._modules[f"llmlat_otel.{name}"]

    def _told(self, run: Run, llmlat: Any) -> Seen:
        """Run a program with these functions of the SDK's."""
        notes: list[str] = []
        self._noticed.notes = notes
        left: list[str] = []
        app = App(run.is_async, llmlat)
        thread_count = _thread._count()
        try:
            (_looped if run.is_async else _driven)(_observed(run.program, app, left))
        except asyncio.TimeoutError:
            app.say("the program hangs")
        deadline = time.monotonic() + THREADS_DEADLINE_S
        while _thread._count() > thread_count and time.monotonic() < deadline:
            time.sleep(0.0005)
        if _thread._count() > thread_count:
            left.append("a thread goes on")
        net = app.network
        app.say("connections", net.close_count, "left", len(net.answers), "sent", len(net.sent))
        return Seen(json.dumps(app.said), notes, left)

    def run(self, run: Run, prepare: Callable[[], None], done: Callable[[], None]) -> Seen:
        """Run a program as the first one that uses the SDK.

        Args:
            run: The program.
            prepare: Called when the SDK is as new.
            done: Called when the program is over.
        """
        self._renew()
        os.environ[PHASE_MIN] = ALL_ARE_SPANS if run.is_async else NONE_IS_A_SPAN
        os.environ[ENGINE_STEPS] = "true"
        prepare()
        with _nothing_is_kept():
            return self.next(run, done)

    def next(self, run: Run, done: Callable[[], None] = lambda: None) -> Seen:
        """Run another program, with what those before it have left behind."""
        spans = self.tracers.spans
        spans.ended.clear()
        spans.pending.clear()
        before = self._fault_count()
        raised = [*_raised(self.sdk.instrument)]
        seen = self._told(run, self.sdk)
        raised += _raised(self.sdk.uninstrument)
        done()
        if spans.pending:
            gc.collect()  # What is in a cycle has not been dropped so far.
        deadline = time.monotonic() + SPANS_DEADLINE_S
        while spans.pending and time.monotonic() < deadline:
            time.sleep(0.0005)
        seen.notes += raised
        seen.faults = self._fault_count() - before
        seen.spans = sorted(each for each in spans.ended if not each.startswith("phase"))
        seen.left += [f"span {name!r} has not ended" for name in spans.pending.values()]
        seen.left += self._put_back()
        return seen

    def _renew(self) -> None:
        """A new process, as far as the SDK can tell."""
        self.tracers.renew()
        self.meters.renew()
        self.module("core.runtime")._current = None
        self.module("core.native_spans")._watched.clear()
        for forget in self._caches:
            forget()

    def _fault_count(self) -> int:
        counted: dict[str, int] = self.module("core.guard").faults()
        return sum(counted.values())

    def _library(self) -> dict[tuple[Any, str], Any]:
        """The library's own methods, where the SDK times them; None where one is inherited."""
        instrumentors = self.module("instrumentation").INSTRUMENTORS.values()
        found = {}
        for target in (target for each in instrumentors for target in each.targets):
            *owners, name = target.attribute.split(".")
            owner: Any = sys.modules.get(target.module)
            for each in owners:
                owner = getattr(owner, each, None)
            if owner is not None:
                found[owner, name] = vars(owner).get(name)
        return found

    def _put_back(self) -> list[str]:
        """Make the library whole again if the SDK has not, at its second try."""
        if self._wrong():
            self.sdk.uninstrument()
        wrong = self._wrong()
        for owner, name in wrong:
            setattr(owner, name, self._originals[owner, name])
        return [f"{owner.__name__}.{name} was not put back" for owner, name in wrong]

    def _wrong(self) -> list[tuple[Any, str]]:
        return [
            (owner, name)
            for (owner, name), original in self._originals.items()
            if vars(owner).get(name) is not original
        ]


@contextlib.contextmanager
def _nothing_is_kept() -> Iterator[None]:
    """What is registered for the end of the process, or its forks, would pile up."""
    with contextlib.ExitStack() as stack:
        for module, name in ((os, "register_at_fork"), (atexit, "register")):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, lambda *_, **__: None)
        yield


async def _observed(program: Program, app: App, left: list[str]) -> None:
    """Run a program, and see that it leaves the context as it was."""
    before = contexts.get_current()
    try:
        await program(app)
    except Exception as error:  # noqa: BLE001
        app.say("the program failed", error)
    if contexts.get_current() != before:
        left.append("the context is another")
        contexts.attach(before)


def _looped(program: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run`, without its waiting for threads: a fault may have cut one off."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(program, PROGRAM_DEADLINE_S))
        for task in (left := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.wait(left) if left else asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _driven(program: Coroutine[Any, Any, None]) -> None:
    """Run a synchronous program."""
    with contextlib.suppress(StopIteration):
        program.send(None)
        raise RuntimeError("a synchronous program has waited")


def _raised(work: Callable[[], None]) -> Iterator[str]:
    try:
        work()
    except Exception as error:  # noqa: BLE001
        yield f"raised: {work.__name__}: {error!r}"
