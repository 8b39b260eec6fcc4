"""How a call ends: once, with all that is known of it, and keeping nothing of the user's."""

import _thread
import asyncio
import gc
import threading
from typing import Any

import pytest

from llmlat_otel.core.call import call_underway, timed
from llmlat_otel.core.guard import faults
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.testing import MS, FakeStream
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind
from tests.llmlat_otel.core.conftest import FakeReader

TEXT = ContentKind.TEXT


def ended(library, record, end_it, **asked):
    """The operation span of a streamed call, after something was done with its stream."""
    events = asked.pop("events", [(MS, TEXT)] * 3)
    end_it(library.create(lambda: FakeStream(library.clock, events), stream=True, **asked))
    (span,) = [span for span in record.tree() if span["kind"] == "CLIENT"]
    return span


def test_st_11_a_stream_whose_last_event_never_came_is_incomplete_and_no_error(library, record):
    span = ended(library, record, list, is_terminated=False)
    assert span["attributes"][names.LLMLAT_STREAM_END] == "incomplete"
    assert names.ERROR_TYPE not in span["attributes"]
    assert "error" not in span


def test_a_stream_that_could_not_be_read_is_not_called_incomplete(library, record):
    span = ended(library, record, list, is_terminated=False, events=[(MS, OSError)])
    assert span["attributes"][names.LLMLAT_STREAM_END] == "complete"


def test_the_content_of_an_incomplete_stream_may_have_gone_on(library, record):
    span = ended(library, record, list, is_terminated=False)
    phases = {each["name"]: each for each in record.tree() if each["parent"] == span["id"]}
    assert phases["phase stream"]["attributes"][names.LLMLAT_PHASE_TRUNCATED]


def close(stream):
    next(stream)
    stream.close()


def cancelled(stream):
    with pytest.raises(asyncio.CancelledError):
        list(stream)


def broken(stream):
    with pytest.raises(OSError, match="broken"):
        list(stream)


LEFT = {
    "closed": (close, "closed_early", "complete"),
    "dropped": (next, "abandoned", "complete"),
    "cancelled": (cancelled, "cancelled", "complete"),
    "broken off": (broken, "failed", "failed"),
}


@pytest.mark.parametrize("is_whole", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("leave", "before", "after"), LEFT.values(), ids=LEFT)
def test_st_10_only_before_its_last_event_is_a_stream_left_early(
    leave, before, after, is_whole, library, record
):
    ended_by = {cancelled: asyncio.CancelledError(), broken: OSError("broken")}
    events = [(MS, TEXT), (MS, ended_by.get(leave, TEXT))]
    span = ended(library, record, leave, events=events, is_whole=is_whole)
    said = span["attributes"]
    end = after if is_whole else before
    assert said[names.LLMLAT_STREAM_END] == end
    assert (names.ERROR_TYPE in said) == ("error" in span) == (end in {"cancelled", "failed"})


def test_a_call_ends_once_whichever_thread_ends_it(library, record, caplog):
    def close_everywhere(stream):
        next(stream)
        barrier = threading.Barrier(8)

        def close():
            barrier.wait()
            stream.close()

        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert ended(library, record, close_everywhere)["attributes"][names.LLMLAT_STREAM_END]
    assert caplog.records == [], "OpenTelemetry warns of a span that is ended twice"


def test_a_call_that_cannot_be_written_is_ended_all_the_same(library, record, monkeypatch):
    def fail(*_, **__):
        raise LookupError

    monkeypatch.setattr(PhaseRecorder, "finish", fail)
    library.create(library.send, model="m")
    assert [span["name"] for span in record.tree()] == ["chat m"]


def test_a_completed_stream_that_the_collector_finds_starts_no_thread(library, record, monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: pytest.fail("a thread"))
    stream = library.create(lambda: FakeStream(library.clock, [(MS, TEXT)]), stream=True)
    list(stream)
    held: list[Any] = [stream]
    held.append(held)
    del stream, held
    gc.collect()


class Told:
    """A user's object that tells when it is gone."""

    def __init__(self, gone):
        self._gone = gone

    def __del__(self):
        self._gone.append(1)


def test_nothing_of_the_users_is_kept_when_a_stream_is_gone(library, record):
    gone: list[int] = []

    def end_it(stream):
        stream.theirs = Told(gone)
        stream.itself = stream
        next(stream)

    ended(library, record, lambda stream: list(end_it(stream) or stream), model="m")
    gc.collect()
    assert gone == [1]


def test_a_raw_response_of_which_nothing_is_read_is_abandoned(library, record):
    class Response:
        def parse(self):
            """Never called."""

    response = library.create(Response, stream=True)
    assert isinstance(response, Response)
    del response
    attributes = record.tree()[0]["attributes"]
    assert attributes[names.LLMLAT_STREAM_END] == "abandoned"
    assert names.LLMLAT_STREAM_CHUNK_COUNT not in attributes, "nobody told events apart"


def test_the_call_of_a_response_that_is_there_ends_when_it_came_not_when_it_is_parsed(
    library, record
):
    class Response:
        is_closed = True

        def parse(self):
            return "parsed"

    def create():
        library.wait(5)
        return Response()

    response = library.create(create, model="m")
    library.wait(100)
    assert response.parse() == "parsed"
    span = record.tree()[0]
    assert span["end_ns"] - span["start_ns"] == 5 * MS


class Telling(FakeReader):
    """A response that says something in our names and something in OpenTelemetry's."""

    def response(self, response, recorder):
        self.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] = 7
        self.facts[names.GEN_AI_USAGE_OUTPUT_TOKENS] = 8


def test_only_what_is_in_our_own_names_is_said_on_somebody_elses_span(clock, record):
    def create():
        call = call_underway()
        assert call is not None
        call.begin_attempt(None)
        return "response"

    tracer = record.tracer_provider.get_tracer("theirs")
    asked = {names.GEN_AI_OPERATION_NAME: "chat"}
    with tracer.start_as_current_span("theirs", attributes=asked):
        wrap(create, timed("telling", Telling))()
    (span,) = [each for each in record.spans if each.name == "theirs"]
    assert span.attributes[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 7
    assert names.GEN_AI_USAGE_OUTPUT_TOKENS not in span.attributes


def test_a_stream_to_which_there_can_be_no_weak_reference_is_one_like_others(library, record):
    before = faults()
    assert list(library.create(lambda: iter([TEXT, TEXT]), model="m", stream=True)) == [TEXT] * 2
    assert faults() == before
    (span,) = [each for each in record.tree() if each["kind"] == "CLIENT"]
    assert span["attributes"][names.LLMLAT_STREAM_CHUNK_COUNT] == 2
