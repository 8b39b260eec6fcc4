"""Decorated coroutines that never run, or not to their end."""

import gc

import pytest

import llmlat_otel
from llmlat_otel.testing import MS


@pytest.mark.parametrize("decorator", [llmlat_otel.tool, llmlat_otel.agent])
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "dropped"])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_coroutine_that_never_runs_has_taken_no_time(record, clock, decorator, is_closed):
    @decorator("late")
    async def late():
        """Never runs."""

    coroutine = late()
    clock.advance(MS)
    if is_closed:
        coroutine.close()
    assert record.tree() == []
    del coroutine
    gc.collect()
    (span,) = record.tree()
    assert (span["start_ns"], span["end_ns"], "error" in span) == (0, 0, False)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_phase_that_never_runs_is_none(record):
    @llmlat_otel.phase("route")
    async def route():
        """Never runs."""

    with llmlat_otel.tool("gateway"):
        route().close()
    assert len(record.tree()) == 1


class Pause:
    def __await__(self):
        yield


def test_a_coroutine_that_is_left_half_way_ends_where_it_is_dropped(record, clock):
    @llmlat_otel.tool()
    async def late():
        await Pause()

    coroutine = late()
    clock.advance(MS)
    coroutine.send(None)
    coroutine.close()
    assert record.tree()[0]["end_ns"] == MS
