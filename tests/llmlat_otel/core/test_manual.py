"""The manual API: every form of function, and what its spans say."""

import asyncio
import contextlib
import contextvars
import gc
import inspect
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace

import llmlat_otel
from llmlat_otel.core.propagation import carry
from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_FIRST_CONTENT

SECOND_NS = 1_000_000_000


def by_name(record):
    return {span["name"]: span for span in record.tree()}


def test_an_agent_with_a_tool_and_a_retrieval(clock, record):
    with llmlat_otel.agent("adviser"):
        clock.advance(1 * MS)
        with llmlat_otel.tool("quote", call_id="call-1"):
            clock.advance(2 * MS)
        with llmlat_otel.retrieval("policies"):
            clock.advance(3 * MS)
    spans = record.tree()
    assert [(span["name"], span["id"], span["parent"], span["kind"]) for span in spans] == [
        ("invoke_agent adviser", 1, None, "INTERNAL"),
        ("execute_tool quote", 2, 1, "INTERNAL"),
        ("retrieval policies", 3, 1, "INTERNAL"),
    ]
    assert [(span["start_ns"], span["end_ns"]) for span in spans] == [
        (0, 6 * MS),
        (1 * MS, 3 * MS),
        (3 * MS, 6 * MS),
    ]
    assert spans[1]["attributes"] == {
        names.LLMLAT_CONTRACT_VERSION: "0.1.0",
        names.LLMLAT_BOUNDARY_NAME: "agent",
        names.GEN_AI_OPERATION_NAME: "execute_tool",
        names.GEN_AI_TOOL_NAME: "quote",
        names.GEN_AI_TOOL_CALL_ID: "call-1",
        names.LLMLAT_CLOCK_ANCHOR_MONOTONIC: SECOND_NS,
        names.LLMLAT_CLOCK_ANCHOR_WALL: 1_700_000_000 * SECOND_NS,
        names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY: 0,
        names.LLMLAT_CLOCK_MONOTONIC_START: SECOND_NS + 1 * MS,
        names.LLMLAT_CLOCK_DOMAIN_ID: "manual",
    }
    assert spans[0]["attributes"][names.GEN_AI_AGENT_NAME] == "adviser"
    assert spans[2]["attributes"][names.LLMLAT_RETRIEVAL_SOURCE] == "policies"


def test_a_decorated_function_is_named_after_itself(clock, record):
    @llmlat_otel.tool()
    def weather(city):
        """What the weather is."""
        clock.advance(MS)
        return city

    assert weather("Bern") == "Bern"
    assert weather("Rome") == "Rome"
    assert weather.__doc__ == "What the weather is."
    assert [span["name"] for span in record.tree()] == ["execute_tool weather"] * 2


@pytest.mark.parametrize("decorator", ["agent", "phase", "retrieval", "tool"])
def test_a_decorator_without_its_parentheses_says_so(decorator):
    def weather(city):
        return city

    with pytest.raises(TypeError, match=rf"write @{decorator}\(\.\.\.\)"):
        getattr(llmlat_otel, decorator)(weather)


def test_a_decorated_method_knows_its_instance(record):
    class Tools:
        @llmlat_otel.tool("own")
        def own(self):
            return self

    tools = Tools()
    assert tools.own() is tools
    assert len(record.tree()) == 1


def test_a_decorated_coroutine_function_stays_one(clock, record):
    @llmlat_otel.agent()
    async def plan():
        clock.advance(MS)
        return trace.get_current_span()

    assert inspect.iscoroutinefunction(plan)
    span = asyncio.run(plan())
    assert span.get_span_context().span_id == 1
    assert record.tree()[0]["end_ns"] == MS


def test_an_async_block(clock, record):
    async def main():
        async with llmlat_otel.agent("adviser"), llmlat_otel.tool("quote"):
            clock.advance(MS)

    asyncio.run(main())
    assert set(by_name(record)) == {"invoke_agent adviser", "execute_tool quote"}


def test_a_generator_is_current_only_while_it_runs(clock, record):
    @llmlat_otel.agent("adviser")
    def answer():
        for word in ("a", "b"):
            assert trace.get_current_span().get_span_context().span_id == 1
            clock.advance(MS)
            yield word

    assert inspect.isgeneratorfunction(answer)
    words = []
    for word in answer():
        assert trace.get_current_span() is trace.INVALID_SPAN
        words.append(word)
    assert words == ["a", "b"]
    (span,) = record.tree()
    assert span["end_ns"] == 2 * MS


def test_an_async_generator_that_is_left_early_ends_once_and_silently(clock, record, caplog):
    @llmlat_otel.agent("adviser")
    async def answer():
        for word in ("a", "b"):
            clock.advance(MS)
            yield word

    async def main():
        async for _ in answer():
            break
        gc.collect()
        assert trace.get_current_span() is trace.INVALID_SPAN

    asyncio.run(main())
    assert len(record.tree()) == 1
    assert not caplog.records


def test_exceptions_pass_and_are_named(record):
    with pytest.raises(LookupError), llmlat_otel.tool("quote"):
        raise LookupError
    span = record.tree()[0]
    assert span["error"]
    assert span["attributes"][names.ERROR_TYPE] == "LookupError"


def test_one_block_object_can_be_entered_again_inside_itself(record):
    block = llmlat_otel.tool("again")
    with block, block:
        pass
    assert [(span["id"], span["parent"]) for span in record.tree()] == [(1, None), (2, 1)]


def test_a_block_object_can_be_shared_by_tasks(clock, record, caplog):
    block = llmlat_otel.tool("shared")

    async def use(turns):
        with block as span:
            for _ in range(turns):
                await asyncio.sleep(0)
            assert trace.get_current_span() is span

    async def main():
        await asyncio.gather(use(1), use(3), use(2))

    asyncio.run(main())
    assert len(record.tree()) == 3
    assert not caplog.records


def test_a_block_in_a_generator_that_is_closed_elsewhere(record, caplog):
    async def generate():
        with llmlat_otel.agent("adviser"):
            yield 1

    async def elsewhere(generator):
        await generator.aclose()
        assert trace.get_current_span() is trace.INVALID_SPAN

    async def main():
        generator = generate()
        await generator.__anext__()
        await asyncio.create_task(elsewhere(generator))

    asyncio.run(main())
    assert len(record.tree()) == 1
    assert not caplog.records


def test_parallel_tools_are_siblings(record):
    @llmlat_otel.tool()
    async def one():
        await asyncio.sleep(0)

    async def main():
        async with llmlat_otel.agent("adviser"):
            await asyncio.gather(one(), one())

    asyncio.run(main())
    assert [span["parent"] for span in record.tree()] == [None, 1, 1]


def test_threads_are_children_where_they_are_carried(record):
    @llmlat_otel.tool()
    def one():
        return trace.get_current_span().get_span_context().trace_id

    with ThreadPoolExecutor() as pool, llmlat_otel.agent("adviser"):
        traces = [pool.submit(carry(one)).result(), pool.submit(one).result()]
    assert traces == [1, 2], "only the carried one is in the agent's trace"


def test_first_content_marks_the_enclosing_agent_once(clock, record):
    with llmlat_otel.agent("adviser"), llmlat_otel.tool("show"):
        clock.advance(2 * MS)
        llmlat_otel.first_content()
        clock.advance(1 * MS)
        llmlat_otel.first_content()
    spans = by_name(record)
    assert spans["invoke_agent adviser"]["events"] == [(LLMLAT_FIRST_CONTENT, 2 * MS, {})]
    assert "events" not in spans["execute_tool show"]


def test_first_content_without_an_agent_marks_the_current_span(clock, record):
    with record.tracer_provider.get_tracer("app").start_as_current_span(
        "request", start_time=clock.wall_ns
    ):
        clock.advance(MS)
        llmlat_otel.first_content()
    assert record.tree()[0]["events"] == [(LLMLAT_FIRST_CONTENT, MS, {})]


def test_a_phase_of_the_current_span(clock, record):
    with llmlat_otel.tool("gateway"):
        clock.advance(1 * MS)
        with llmlat_otel.phase("admission"):
            clock.advance(4 * MS)
    phase = by_name(record)["phase admission"]
    assert (phase["parent"], phase["start_ns"], phase["end_ns"]) == (1, 1 * MS, 5 * MS)
    assert phase["attributes"] == {
        names.LLMLAT_PHASE_NAME: "admission",
        names.LLMLAT_PHASE_CLASS: "overhead",
        names.LLMLAT_PHASE_EVIDENCE: "measured",
        names.LLMLAT_PHASE_DURATION: 0.004,
        names.LLMLAT_BOUNDARY_NAME: "gateway",
        names.LLMLAT_CLOCK_MONOTONIC_START: SECOND_NS + 1 * MS,
        names.LLMLAT_CLOCK_DOMAIN_ID: "manual",
    }


@pytest.mark.parametrize("record", [Settings(phases=PhasesMode.ATTRIBUTES)], indirect=True)
def test_a_phase_as_an_attribute(clock, record):
    @llmlat_otel.phase("route")
    def choose():
        clock.advance(4 * MS)

    with llmlat_otel.tool("gateway"):
        choose()
    assert record.tree()[0]["attributes"][names.LLMLAT_ROUTE_DURATION] == 0.004


def test_a_phase_that_the_contract_does_not_know_is_not_timed(record, caplog):
    with llmlat_otel.tool("gateway"), llmlat_otel.phase("thinking"):
        pass
    assert len(record.tree()) == 1
    assert "thinking" in caplog.text


def test_attributes_can_be_set_on_what_a_block_gives(record):
    with llmlat_otel.tool("quote") as span:
        span.set_attribute("app.key", 1)
    assert record.tree()[0]["attributes"]["app.key"] == 1


def test_a_task_that_a_function_returns_is_still_a_task(clock, record):
    async def work():
        await asyncio.sleep(0)
        clock.advance(5 * MS)
        return 1

    @llmlat_otel.tool("quote")
    def start():
        return asyncio.get_running_loop().create_task(work())

    async def main():
        task = start()
        assert isinstance(task, asyncio.Task)
        return await task

    assert asyncio.run(main()) == 1
    assert record.tree()[0]["end_ns"] == 5 * MS


def test_an_error_thrown_into_a_generator_is_the_tools_error(record):
    @contextlib.contextmanager
    @llmlat_otel.tool()
    def order():
        yield

    with pytest.raises(KeyError), order():
        raise KeyError
    assert by_name(record)["execute_tool order"]["attributes"][names.ERROR_TYPE] == "KeyError"


def test_a_context_manager_is_timed_above_the_tool(record, clock):
    @contextlib.contextmanager
    @llmlat_otel.tool()
    def whole():
        yield

    @llmlat_otel.tool()
    @contextlib.contextmanager
    def making():
        yield

    with whole(), making():
        clock.advance(MS)
    spans = by_name(record)
    assert [spans[f"execute_tool {name}"]["end_ns"] for name in ("whole", "making")] == [MS, 0]


def test_what_is_sent_into_a_generator_runs_within_the_tool(record):
    def step():
        span: Any = trace.get_current_span()
        return span.name

    @llmlat_otel.tool()
    def order():
        yield (yield step()), step()

    @llmlat_otel.tool()
    async def order_async():
        yield (yield step()), step()

    async def main():
        generator = order_async()
        await generator.asend(None)
        assert await generator.asend(1) == (1, "execute_tool order_async")
        with pytest.raises(KeyError):
            await generator.athrow(KeyError())

    generator = order()
    next(generator)
    assert generator.send(1) == (1, "execute_tool order")
    asyncio.run(main())
    spans = by_name(record)
    assert spans["execute_tool order_async"]["attributes"][names.ERROR_TYPE] == "KeyError"


def test_nothing_is_said_of_an_agent_that_is_over(record, caplog):
    async def late():
        await asyncio.sleep(0)
        llmlat_otel.first_content()

    async def main():
        with llmlat_otel.agent("adviser"):
            task = asyncio.create_task(late())
        await task

    asyncio.run(main())
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("own", end_on_exit=False) as span, llmlat_otel.phase("tool"):
        span.end()
    assert "events" not in by_name(record)["invoke_agent adviser"]
    assert not caplog.records


def test_blocks_that_are_left_elsewhere_are_not_kept(record):
    """Callbacks of one loop: what enters here is left in a context of its own."""

    def enter_here_and_leave_elsewhere():
        elsewhere = contextvars.copy_context()
        gone = []
        for _ in range(3):
            block = llmlat_otel.tool("quote")
            span = block.__enter__()
            elsewhere.run(block.__exit__, None, None, None)
            gone.append(weakref.ref(span))
        with llmlat_otel.tool("quote"):
            del block, span
            gc.collect()
            assert [each() for each in gone[:2]] == [None, None], "the last is in the context still"

    contextvars.copy_context().run(enter_here_and_leave_elsewhere)
