"""The chats in memory behave like a server, and our wrappers find in them what they look for."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from bench.bare_library import AsyncBareChat, BareChat, bare_instrumentor
from bench.chat import AsyncChat, SyncChat, reads_of
from bench.otel_spans import Keeper, plain_maker, spans_of
from llmlat_otel import instrument, uninstrument
from llmlat_otel.settings import PhasesMode
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import StreamEnd

SEVEN = [
    Phase.PREPARE,
    Phase.POOL_WAIT,
    Phase.CONNECT,
    Phase.SEND,
    Phase.WAIT,
    Phase.FIRST_CONTENT,
    Phase.FINALIZE,
]


def said(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@pytest.fixture
def timed():
    bare = bare_instrumentor()
    instrument()
    bare.instrument()
    yield
    bare.uninstrument()
    uninstrument()


def test_each_chunk_is_a_read_of_its_own():
    reads = reads_of(3)
    assert [read.count(b"data: {") for read in reads] == [0, 1, 1, 1, 0]
    assert reads[-1].endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("make", [BareChat, AsyncBareChat, SyncChat, AsyncChat])
@pytest.mark.usefixtures("timed")
class TestTimed:
    def test_a_call_of_two_chunks_has_seven_phases(self, make):
        operation, *phases = spans_of(PhasesMode.SPANS, lambda: make(2).call(1))
        found = [said(phase)[names.LLMLAT_PHASE_NAME] for phase in phases]
        assert found == [phase.value for phase in SEVEN]
        assert said(operation)[names.LLMLAT_STREAM_END] == StreamEnd.COMPLETE.value

    def test_every_chunk_counts(self, make):
        (operation,) = spans_of(PhasesMode.ATTRIBUTES, lambda: make(9).call(1))
        assert said(operation)[names.LLMLAT_STREAM_CHUNK_COUNT] == 9

    def test_stamping_reads_the_same_stream(self, make):
        (operation,) = spans_of(PhasesMode.ATTRIBUTES, lambda: make(9).call_and_stamp(1))
        assert said(operation)[names.LLMLAT_STREAM_CHUNK_COUNT] == 9


def test_plain_spans_are_as_many_and_as_rich(timed):
    spans = spans_of(PhasesMode.SPANS, lambda: BareChat(2).call(1))
    keeper = Keeper()
    plain_maker(spans, keeper)()
    *phases, operation = keeper.spans
    assert [(span.name, span.attributes) for span in (operation, *phases)] == [
        (span.name, span.attributes) for span in spans
    ]
