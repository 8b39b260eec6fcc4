"""Each function that a wrapper of vLLM calls fails in its turn: vLLM does as without us."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from types import FunctionType, SimpleNamespace

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from llmlat_otel.core import engine_spans, engine_timeline, native_spans
from llmlat_otel.core.guard import faults
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.instrumentors.vllm import arrivals, frontend, notes, scheduler
from llmlat_otel.instrumentors.vllm import requests as requests_of_vllm
from llmlat_otel.instrumentors.vllm.targets import TARGETS
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, recorded
from tests.llmlat_otel.instrumentors.fake_vllm import FASTAPI, OUTPUT_PROCESSOR, library
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES, RequestStatus
from tests.llmlat_otel.instrumentors.test_vllm_arrivals import in_a_task
from tests.llmlat_otel.instrumentors.vllm_engine import Engine
from tests.llmlat_otel.instrumentors.vllm_timed import LAST, OtherClock, elsewhere, modules_of

OLDEST = "0.10.2"

MODULES = (
    arrivals,
    engine_spans,
    engine_timeline,
    frontend,
    native_spans,
    notes,
    requests_of_vllm,
    scheduler,
)
WRAPPERS = {target.wrapper for target in TARGETS}


class InjectedError(Exception):
    """A fault of ours."""


def fail(*_, **__):
    raise InjectedError


def inner():
    """Every function and method of ours, by its place; the wrappers themselves left out."""
    for module in MODULES:
        for owner in (module, *_classes(module)):
            for name, function in vars(owner).items():
                if _is_ours(function, module) and function not in WRAPPERS:
                    yield owner, name


def _classes(module):
    return [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__
    ]


def _is_ours(function, module):
    is_made = getattr(function, "__name__", "").startswith("__") and function.__name__ != "__init__"
    return type(function) is FunctionType and function.__module__ == module.__name__ and not is_made


CALLED_BY_OTHERS = {"on_start", "on_end", "_on_ending", "shutdown", "force_flush"}
INNER = {
    f"{getattr(owner, '__qualname__', owner.__name__.rpartition('.')[2])}.{name}": (owner, name)
    for owner, name in inner()
    if name not in CALLED_BY_OTHERS
}


def make_native(provider, output):
    tracer = provider.get_tracer("vllm")
    with tracer.start_as_current_span("llm_request", kind=SpanKind.SERVER) as span:
        span.set_attribute("id", output.request_id)


def answers(modules, version, clock, provider, in_core):
    """All that an engine hands over in an eventful life."""
    engine = Engine(
        modules, SHAPES[version], clock, trace=partial(make_native, provider), in_core=in_core
    )
    engine.scheduler.connector = object()
    said = []
    for each in "abcde":
        engine.add(each)
    application = modules[FASTAPI].FastAPI()

    async def answer(scope):
        engine.add("f", headers={"traceparent": f"00-{1:032x}-{2:016x}-01"})

    application.answer = answer
    scope = {"type": "http", "path": "/v1/chat/completions", "headers": []}
    in_a_task(lambda: application(scope, None, None))
    engine.scheduler.requests["e"].status = RequestStatus.WAITING_FOR_REMOTE_KVS
    engine.step({"a": 2, "b": 4}, {"b": 1})
    engine.scheduler.requests["e"].status = RequestStatus.WAITING
    engine.step({"a": 2, "c": 4})
    said.append(engine.abort("b"))
    engine.step({"d": 4, "e": 4}, evicted=["a"])
    engine.step({"a": 4, "f": 4, "d": 1}, f=0)
    engine.outputs.trace = None
    engine.step({"a": 1, "d": 1}, a=0)
    queue: list[object] = []
    engine.outputs.request_states["c"].queue = queue
    error = ConnectionError("dead")
    engine.outputs.propagate_error(error)
    refused = SimpleNamespace(request_id="g")
    states, engine.outputs.request_states = engine.outputs.request_states, None
    with pytest.raises(TypeError):
        engine.outputs.add_request(refused, None)
    engine.outputs.request_states = states
    return [*said, *engine.told, queue == [error], sorted(states)]


@pytest.fixture
def live(clock, monkeypatch):
    """Runs an engine's life, timed or not, with its EngineCore elsewhere or here."""

    def run(version, *, is_timed, is_elsewhere=False):
        settings = Settings(phase_min_ns=0, engine_steps=True)
        with recorded(clock=clock, settings=settings) as record:
            monkeypatch.setattr(trace, "_TRACER_PROVIDER", record.tracer_provider)
            modules = modules_of(version) if is_timed else library(SHAPES[version])
            monkeypatch.setitem(sys.modules, OUTPUT_PROCESSOR, modules[OUTPUT_PROCESSOR])
            core_clock = OtherClock(clock, 5 * MS) if is_elsewhere else clock
            in_core = elsewhere(core_clock)
            return answers(modules, version, clock, record.tracer_provider, in_core)

    return run


def count():
    return sum(faults().values())


@pytest.mark.parametrize("version", SHAPES)
def test_with_nothing_failing_it_does_what_it_would_without_us(version, live):
    assert live(version, is_timed=True) == live(version, is_timed=False)


@pytest.mark.parametrize("place", INNER)
def test_whatever_fails_is_counted_and_not_noticed(place, live, monkeypatch):
    owner, name = INNER[place]
    monkeypatch.setattr(owner, name, fail)
    before = count()
    for version in (LAST, OLDEST):
        for is_elsewhere in (False, True):
            timed = live(version, is_timed=True, is_elsewhere=is_elsewhere)
            assert timed == live(version, is_timed=False)
    assert count() > before


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.attribute)
def test_what_vllm_raises_is_raised_and_what_it_is_given_is_given(target, clock):
    given = []

    def method(*args, **kwargs):
        given.append((args, kwargs))
        raise KeyError("theirs")

    with recorded(clock=clock), pytest.raises(KeyError) as raised:
        target.wrapper(method, SimpleNamespace(), (1, 2), {"three": 4})
    assert given == [((1, 2), {"three": 4})]
    assert raised.value.args == ("theirs",)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.attribute)
@pytest.mark.parametrize("args", [(), (1,), (1, 2, 3, 4, 5, 6, 7, 8)])
@pytest.mark.parametrize("kwargs", [{}, {"unknown": 1, "request": 2, "target": 3, "work": 4}])
def test_a_wrapper_takes_what_no_version_of_vllm_has_so_far(target, args, kwargs, clock):
    def method(*given, **named):
        return given, named

    owner = type("Owner", (), {"timed": wrap(method, target.wrapper)})()
    with recorded(clock=clock):
        assert owner.timed(*args, **kwargs) == ((owner, *args), kwargs)
