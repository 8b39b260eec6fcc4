"""The current span goes to other threads with the work, and no further; nothing else changes."""

import concurrent.futures
import contextvars
import functools
import gc
import inspect
import pickle
import queue
import sys
import threading
import traceback
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace

import llmlat_otel
from llmlat_otel.core.attempt import underway
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import threads
from llmlat_otel.testing import recorded
from tests.llmlat_otel.places import PLACES, run, submit, thread, to_thread
from tests.llmlat_otel.waiting import parents

ORIGINALS = (ThreadPoolExecutor.submit, threading.Thread.start, concurrent.futures.Future.result)


@pytest.fixture(autouse=True)
def instrumentor():
    before = faults()
    made = Instrumentor(threads.TARGETS)
    made.instrument()
    yield made
    made.uninstrument()
    assert (
        ThreadPoolExecutor.submit,
        threading.Thread.start,
        concurrent.futures.Future.result,
    ) == ORIGINALS
    assert faults() == before


@pytest.fixture
def record():
    with recorded() as what:
        yield what


def tool(name="one"):
    with llmlat_otel.tool(name):
        return threading.current_thread()


# ── Where it goes ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_pt_02_what_runs_in_another_thread_is_a_child_of_what_handed_it_over(record, place):
    with llmlat_otel.agent("adviser"):
        place(tool)
    assert parents(record) == {"adviser": None, "one": "adviser"}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_span_of_another_instrumentation_is_carried_alike(record, place):
    tracer = record.tracer_provider.get_tracer("theirs")
    with tracer.start_as_current_span("request"):
        place(tool)
    assert parents(record) == {"request": None, "one": "request"}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_call_that_is_made_in_a_thread_is_one_of_its_own(record, place):
    seen = []
    variable = contextvars.ContextVar[str]("theirs", default="not carried")

    def work():
        seen.append((underway.get(), variable.get()))

    def handed_over():
        variable.set("carried")
        with llmlat_otel.agent("adviser"):
            place(work)

    contextvars.copy_context().run(handed_over)
    theirs = "carried" if place in {to_thread} else "not carried"
    assert seen == [(None, theirs)]


def test_pt_04_tools_stay_in_the_trace_at_any_concurrency_and_other_work_stays_out(record):
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            with llmlat_otel.agent("adviser"):
                list(pool.map(tool, ("a", "b", "c")))
            pool.submit(tool, "title").result()
    found = [(span["name"], span["parent"]) for span in record.tree()]
    agents = {span["id"] for span in record.tree() if span["name"] == "invoke_agent adviser"}
    assert {parent for name, parent in found if name == "execute_tool title"} == {None}
    assert sorted(parent for name, parent in found if name[-1] in "abc") == sorted([*agents] * 3)


def test_a_thread_runs_what_its_class_defines_however_it_is_bound(record):
    class Static(threading.Thread):
        run = staticmethod(tool)

    class OfClass(threading.Thread):
        @classmethod
        def run(cls):
            tool(cls.__name__)

    with llmlat_otel.agent("adviser"):
        for started in (Static(), OfClass()):
            started.start()
            started.join()
            assert "run" not in vars(started)
    assert parents(record) == {"adviser": None, "one": "adviser", "OfClass": "adviser"}


# ── Where it does not ────────────────────────────────────────────────────────────────────────────


def test_the_threads_of_a_pool_do_not_keep_the_span_of_whoever_made_them_start(record):
    with ThreadPoolExecutor(1) as pool:
        with llmlat_otel.agent("first"):
            worker = pool.submit(tool, "one").result()
        assert pool.submit(contexts.get_current).result() == {}
        assert pool.submit(tool, "later").result() is worker
    assert parents(record) == {"first": None, "one": "first", "later": None}


def test_a_daemon_thread_has_the_span_for_as_long_as_that_is_there(record):
    """A library starts a worker within the first request, and keeps it."""
    work: queue.Queue[Any] = queue.Queue()
    done: queue.Queue[Any] = queue.Queue()

    def serve():
        for each in iter(work.get, None):
            done.put(each())

    worker = threading.Thread(target=serve, daemon=True)
    with llmlat_otel.agent("first"):
        worker.start()
        work.put(tool)
        done.get()
    for each in (functools.partial(tool, "later"), lambda: dict(contexts.get_current().items())):
        work.put(each)
    done.get()
    assert done.get() == {}
    work.put(None)
    worker.join()
    assert parents(record) == {"first": None, "one": "first", "later": None}


def test_a_daemon_thread_keeps_no_span_in_memory(record):
    is_over, has_begun = threading.Event(), threading.Event()

    def serve():
        has_begun.set()
        is_over.wait()

    worker = threading.Thread(target=serve, daemon=True)
    with trace.use_span(trace.NonRecordingSpan(SPAN)):
        kept = weakref.ref(contexts.get_current())
        worker.start()
        has_begun.wait()
    gc.collect()
    assert kept() is None
    is_over.set()
    worker.join()


SPAN = trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(1))


def test_an_unsampled_span_is_carried_too():
    """Or the thread would begin a trace of its own, which may be sampled."""
    with trace.use_span(trace.NonRecordingSpan(SPAN)):
        for place in PLACES.values():
            seen: list[trace.SpanContext] = []
            place(lambda seen=seen: seen.append(trace.get_current_span().get_span_context()))
            assert seen == [SPAN]


def test_a_thread_that_is_let_go_is_still_a_child(record):
    may_begin = threading.Event()

    def work():
        may_begin.wait()
        tool()

    started = threading.Thread(target=work)
    with llmlat_otel.agent("adviser"):
        started.start()
    may_begin.set()
    started.join()
    assert parents(record) == {"adviser": None, "one": "adviser"}


@pytest.mark.parametrize("module", ["uvicorn.server", "concurrent.futures.thread", "logging"])
def test_a_thread_that_serves_whoever_comes_has_no_span(record, module):
    def serve():
        tool()

    serve.__module__ = module
    with llmlat_otel.agent("adviser"):
        thread(serve)
    assert parents(record) == {"adviser": None, "one": None}


def test_processes_are_left_alone():
    assert inspect.unwrap(ProcessPoolExecutor.submit) is ProcessPoolExecutor.submit


# ── Nothing else changes ─────────────────────────────────────────────────────────────────────────


def test_without_a_span_the_function_itself_is_called():
    def caller():
        return sys._getframe(1).f_code.co_filename

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(caller).result() == concurrent.futures.thread.__file__


@pytest.mark.parametrize("place", [submit, thread], ids=["submit", "thread"])
def test_an_exception_comes_from_where_it_was_raised(record, place, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))

    def work():
        raise LookupError("mine")

    with llmlat_otel.agent("adviser"):
        if place is thread:
            thread(work)
        else:
            with ThreadPoolExecutor(1) as pool:
                seen.append(pool.submit(work).exception())
    (error,) = seen
    assert (type(error), error.args, error.__context__, error.__cause__) == (
        LookupError,
        ("mine",),
        None,
        None,
    )
    assert traceback.extract_tb(error.__traceback__)[-1].name == "work"


def test_arguments_and_results_pass(record):
    def work(*args, **kwargs):
        return args, kwargs

    pool: Any
    with llmlat_otel.agent("adviser"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(work, 1, fn=2, self=3).result() == ((1,), {"fn": 2, "self": 3})
        with pytest.raises(TypeError, match="submit"):
            pool.submit()
        with pytest.raises(TypeError, match="not callable"):
            pool.submit(None).result()
        with pytest.raises(TypeError, match="'fn'"):
            pool.submit(fn=work)


def test_a_thread_looks_as_it_always_does(record):
    before, after = (threading.Thread(target=tool) for _ in range(2))
    before.start()
    before.join()
    with llmlat_otel.agent("adviser"):
        after.start()
        after.join()
        with pytest.raises(RuntimeError, match="only be started once"):
            after.start()
    assert vars(before).keys() == vars(after).keys()
    assert not hasattr(after, "_target"), "it was let go"
    assert "run" not in vars(after)


def test_a_thread_whose_run_is_somebody_elses_runs_that(record):
    ran = []
    theirs: Any = threading.Thread()
    theirs.run = lambda: ran.append(1)
    with llmlat_otel.agent("adviser"):
        run(theirs)
    assert ran == [1]


def test_a_thread_that_cannot_be_started_is_as_it_was(record, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("can't start new thread")

    starter = (
        "_start_joinable_thread"
        if hasattr(threading, "_start_joinable_thread")
        else "_start_new_thread"
    )
    monkeypatch.setattr(threading, starter, fail)
    made = threading.Thread(target=tool)
    with llmlat_otel.agent("adviser"), pytest.raises(RuntimeError, match="can't start"):
        made.start()
    assert "run" not in vars(made)


def test_an_initializer_runs_as_it_always_does(record):
    seen = []
    with (
        llmlat_otel.agent("adviser"),
        ThreadPoolExecutor(
            1, initializer=lambda *args: seen.append((args, contexts.get_current())), initargs=(1,)
        ) as pool,
    ):
        pool.submit(tool)
    assert seen == [((1,), {})]


def test_nothing_that_was_handed_over_is_kept(record):
    class Argument:
        """Something large."""

    def work(argument):
        return weakref.ref(argument)

    with llmlat_otel.agent("adviser"), ThreadPoolExecutor(1) as pool:
        future = pool.submit(work, Argument())
        kept = future.result()
        pool.submit(tool).result()  # The worker has let go of what it did before.
        assert kept() is None
        future_kept = weakref.ref(future)
        del future
        assert future_kept() is None


def test_it_can_be_switched_off(monkeypatch, instrumentor):
    instrumentor.uninstrument()
    monkeypatch.setenv("LLMLAT_DISABLED", "threads")
    llmlat_otel.instrument()
    assert ThreadPoolExecutor.submit is ORIGINALS[0]
    monkeypatch.delenv("LLMLAT_DISABLED")
    llmlat_otel.instrument()
    assert ThreadPoolExecutor.submit is not ORIGINALS[0]
    llmlat_otel.uninstrument()


def test_the_methods_still_look_like_themselves():
    methods: Any = (
        ThreadPoolExecutor.submit,
        threading.Thread.start,
        concurrent.futures.Future.result,
    )
    for method, original in zip(methods, ORIGINALS, strict=True):
        assert inspect.unwrap(method) is original
        assert (method.__name__, method.__qualname__) == (original.__name__, original.__qualname__)
        assert pickle.loads(pickle.dumps(method)) is method
