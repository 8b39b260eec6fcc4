"""A fake vLLM that is timed, and what was recorded of it in few words."""

from __future__ import annotations

from contextlib import contextmanager

from llmlat_otel.core.runtime import Runtime, running, runtime
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.instrumentors.vllm.targets import TARGETS
from llmlat_otel.testing import ManualClock
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.fake_vllm import SCHEDULER, library
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES
from tests.llmlat_otel.instrumentors.vllm_engine import Engine

LAST = "0.32.0"


def modules_of(version, *, has_plugin_in_core=True):
    """The modules of a version, timed as the plugin times them."""
    modules = library(SHAPES[version])
    for target in TARGETS:
        if target.module != SCHEDULER or has_plugin_in_core:
            owner_name, method = target.attribute.split(".")
            owner = getattr(modules[target.module], owner_name)
            setattr(owner, method, wrap(getattr(owner, method), target.wrapper))
    return modules


def engine_of(version, clock, *, has_plugin_in_core=True, **more):
    """An engine of a version, timed."""
    modules = modules_of(version, has_plugin_in_core=has_plugin_in_core)
    return Engine(modules, SHAPES[version], clock, **more)


def elsewhere(clock):
    """What is entered around the work of a process that has a clock of its own."""

    @contextmanager
    def entered():
        here = runtime()
        with running(Runtime(here.settings, clock, here.emitter)):
            yield

    return entered


class OtherClock(ManualClock):
    """The clock of another host: it goes as fast, and is somewhere else."""

    __slots__ = ()

    def __init__(self, clock, ahead_ns):
        super().__init__()
        self.domain_id = "another host"
        self.now_ns = lambda: clock.now_ns() + ahead_ns


def phases(record, span):
    """The phases below a span as (name, start, end) in ms since the span's start."""
    below = [
        each
        for each in record.spans
        if each.parent is not None and each.parent.span_id == span.context.span_id
    ]
    return [
        (
            each.attributes[names.LLMLAT_PHASE_NAME],
            (each.start_time - span.start_time) // 1_000_000,
            (each.end_time - span.start_time) // 1_000_000,
        )
        for each in below
    ]


def cut(record):
    """Names of the phases that were cut short."""
    return {
        each.attributes[names.LLMLAT_PHASE_NAME]
        for each in record.spans
        if each.attributes.get(names.LLMLAT_PHASE_TRUNCATED)
    }


def requests(record):
    """The spans of requests."""
    return [
        each
        for each in record.spans
        if each.attributes.get(names.LLMLAT_BOUNDARY_NAME) == "engine"
        and names.LLMLAT_PHASE_NAME not in each.attributes
    ]


def the_request(record):
    """The only one."""
    (span,) = requests(record)
    return span
