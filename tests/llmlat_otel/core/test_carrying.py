"""Work that is handed to another thread: by hand, and to threads that may outlive the span."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context

import llmlat_otel
from llmlat_otel.core.carrying import Lent, is_service
from tests.llmlat_otel.waiting import parents


def tool(name="one"):
    with llmlat_otel.tool(name):
        return contexts.get_current()


# ── By hand ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "run",
    [
        lambda pool, work: pool.submit(work).result(),
        lambda _, work: work(),
        lambda pool, work: pool.submit(work, name="one").result(),
    ],
    ids=["in a pool", "here", "with arguments"],
)
def test_a_function_is_carried_by_hand(record, run):
    with ThreadPoolExecutor(1) as pool:
        with llmlat_otel.agent("adviser"):
            work = llmlat_otel.carry(tool)
        run(pool, work)
        run(pool, lambda **_: tool("other"))
    assert parents(record) == {"adviser": None, "one": "adviser", "other": None}
    assert (work.__name__, inspect.unwrap(work)) == ("tool", tool)


def test_a_pool_of_another_kind_is_carried_into_by_hand(record):
    with ThreadPool(1) as pool, llmlat_otel.agent("adviser"):
        pool.map(llmlat_otel.carry(tool), ["one"])
    assert parents(record) == {"adviser": None, "one": "adviser"}


def test_without_a_span_there_is_nothing_to_carry():
    assert llmlat_otel.carry(tool) is tool


def test_what_is_carried_leaves_the_thread_as_it_was(record):
    with llmlat_otel.agent("first"):
        work = llmlat_otel.carry(tool)
    with llmlat_otel.agent("second"):
        before = contexts.get_current()
        work()
        assert contexts.get_current() is before
    assert parents(record) == {"first": None, "second": None, "one": "first"}


# ── A context that is lent ───────────────────────────────────────────────────────────────────────


def test_a_lent_context_is_the_same_as_long_as_its_block_runs(record):
    with llmlat_otel.agent("adviser") as span:
        whole = contexts.get_current()
        lent = Lent(whole)
        key = next(iter(whole))
        assert lent.copy() == dict(lent.items()) == dict(whole)
        assert (lent[key], lent.get(key), key in lent) == (whole[key], whole[key], True)
        assert (len(lent), list(lent), list(lent.keys())) == (len(whole), list(whole), list(whole))
        assert list(lent.values()) == list(whole.values())
        assert trace.get_current_span(lent) is span
        inner = contexts.set_value("mine", 1, lent)
        assert trace.get_current_span(inner) is span
    assert (dict(lent), lent.copy(), len(lent), list(lent)) == ({}, {}, 0, [])
    assert (lent.get(key), lent.get(key, 1), key in lent, bool(lent)) == (None, 1, False, False)
    assert trace.get_current_span(lent) is trace.INVALID_SPAN
    assert contexts.set_value("mine", 1, lent) == {"mine": 1}
    with pytest.raises(KeyError):
        lent[key]


def test_a_context_without_a_recorded_span_is_lent_until_nobody_has_it(record):
    context = Context({"key": "value"})
    lent = Lent(context)
    assert lent.get("key") == "value"
    del context
    assert lent.get("key") is None


# ── Threads that serve whoever comes ─────────────────────────────────────────────────────────────


class Server:
    def serve(self):
        """Serve."""


class OwnThread(threading.Thread):
    def run(self):
        """Run."""


@pytest.mark.parametrize(
    ("module", "serves"),
    [
        ("uvicorn.server", True),
        ("uvicorn", True),
        ("opentelemetry.sdk.trace.export", True),
        ("concurrent.futures.thread", True),
        ("multiprocessing.pool", True),
        ("logging.handlers", True),
        ("asyncio.base_events", True),
        ("asyncio.runners", False),
        ("uvicorn_like", False),
        ("threading", False),
        ("app.workers", False),
        (None, False),
    ],
)
def test_servers_are_known_by_where_they_come_from(monkeypatch, module, serves):
    monkeypatch.setattr(Server.serve, "__module__", module)
    monkeypatch.setattr(OwnThread.run, "__module__", module)
    assert is_service(threading.Thread(target=Server().serve)) == serves
    assert is_service(OwnThread()) == serves


def test_a_timer_is_no_server():
    assert not is_service(threading.Timer(0, tool))
