"""Work that goes on after the reply: what the SDK says of it, and what the processor does."""

import asyncio

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from llmlat_otel import agent, tool
from llmlat_otel.testing import MS, ManualClock, recorded
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from llmlat_semconv.values import FindingKind


def explained(record):
    return process(decode(encode_spans(record.spans).SerializeToString()).spans)


def path(record):
    """Who answers for which stretch of the request, in ms."""
    (root,) = explained(record).paths.roots
    sections = root.e2e.sections
    return [(each.span.name, each.duration_ns / MS) for each in sections]


#  0          50                                   1050
#  |invoke_agent handler|
#           |execute_tool index ────────────────────|
@pytest.fixture
def record():
    """A handler that replies after 50 ms, and what it has started goes on for a second."""
    clock = ManualClock()

    async def index():
        with tool("index"):
            await asyncio.sleep(0)
            clock.advance(1_000 * MS)

    async def main():
        with agent("handler"):
            clock.advance(49 * MS)
            background = asyncio.create_task(index())
            await asyncio.sleep(0)
            clock.advance(1 * MS)
        await background

    with recorded(clock=clock) as what:
        asyncio.run(main())
        yield what


def test_cx_11_the_request_is_as_long_as_its_handler(record):
    handler, index = record.tree()
    assert (handler["start_ns"], handler["end_ns"]) == (0, 50 * MS)
    assert (index["start_ns"], index["end_ns"]) == (49 * MS, 1_050 * MS)
    assert index["parent"] == handler["id"], "it is the request's work, and outlives it"


def test_cx_11_work_after_the_reply_is_not_on_the_requests_critical_path(record):
    assert path(record) == [("invoke_agent handler", 50.0)]
    kinds = [finding.kind for finding in explained(record).findings]
    assert kinds == [FindingKind.OUTLIVED_PARENT]
