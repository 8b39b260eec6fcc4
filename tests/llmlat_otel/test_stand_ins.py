"""The stand-ins take the place of every function, and do nothing."""

import asyncio

import pytest

from llmlat_otel import api, entry, stand_ins


def test_they_have_the_names_of_what_they_stand_for():
    assert stand_ins.__all__ == api.__all__


@pytest.mark.parametrize("name", ["agent", "phase", "retrieval", "tool"])
def test_decorators_return_the_function_itself_and_blocks_run(name):
    function = getattr(stand_ins, name)

    def work():
        return 1

    async def block():
        async with function("a") as span:
            span.set_attribute("k", 1)
            return "done"

    assert function("a")(work) is work
    assert function()(work) is work
    assert function(work) is work
    with function("a") as span:
        assert span.is_recording() is None
    assert asyncio.run(block()) == "done"


def test_exceptions_pass():
    with pytest.raises(ZeroDivisionError), stand_ins.agent("a"):
        raise ZeroDivisionError


def test_the_rest_does_nothing():
    assert stand_ins.tool("t", call_id="1") is not None
    assert [stand_ins.first_content(), stand_ins.instrument(), stand_ins.uninstrument()] == [
        None
    ] * 3
    assert [stand_ins.flush(1), stand_ins.shutdown(timeout_s=1)] == [True, True]
    assert asyncio.run(stand_ins.flush_async(1))
    assert asyncio.run(stand_ins.shutdown_async(timeout_s=1))


def test_the_door_for_opentelemetry_instrument_opens_both_ways(monkeypatch):
    called = []
    monkeypatch.setattr(entry, "instrument", lambda: called.append("in"))
    monkeypatch.setattr(entry, "uninstrument", lambda: called.append("out"))
    instrumentor = entry.LlmlatInstrumentor()
    instrumentor.instrument(skip_dep_check=True)
    instrumentor.uninstrument()
    assert called == ["in", "out"]
    assert instrumentor.instrumentation_dependencies() == ()
