"""What was sent and what has come are compared span by span."""

from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.soaking_ends import note, read_ids
from bench.soaking_ledger import Seen, Sent, tally
from bench.soaking_load import Load, Sending, groups

SECOND_NS = 10**9


def sendings() -> list[Sending]:
    load = Load(groups(40, seed=2))
    made = load.sendings(lambda: 1_800_000_000 * SECOND_NS)
    first = next(made)
    load.end()
    return [first, *made]


SENDINGS = sendings()
TRACES = len(SENDINGS[0].begun)
SPANS = sum(SENDINGS[0].begun)


def all_sent() -> Sent:
    """The parts are taken over at 1, 2 and 3 seconds."""
    sent = Sent()
    for second, sending in enumerate(SENDINGS, 1):
        sent.begin(sending)
        sent.taken(sending.traces, second * SECOND_NS)
    return sent


def seen_at(second: int, *contents: bytes) -> Seen:
    seen = Seen()
    for content in contents:
        note(seen, read_ids(content), second * SECOND_NS)
    return seen


def test_nothing_is_lost_where_everything_has_come():
    counted = tally(all_sent(), seen_at(5, *(sending.content for sending in SENDINGS)))
    assert (counted.traces, counted.sent, counted.received) == (TRACES, SPANS, SPANS)
    assert (counted.lost, counted.repeated, counted.lanes) == (0, 0, 0)


def test_a_delay_is_from_the_last_that_was_taken_over_to_the_last_that_came():
    counted = tally(all_sent(), seen_at(5, *(sending.content for sending in SENDINGS)))
    assert len(counted.delays_s) == TRACES
    assert counted.delay_s(0) == 2
    late = {5 - turn for turn, one in enumerate(SENDINGS, 1) if one.traces}
    assert set(counted.delays_s) <= late


def test_a_request_that_was_taken_over_late_counts_although_it_was_sent_first():
    sent = Sent()
    sent.begin(SENDINGS[0])
    sent.taken([0], 9)
    sent.taken([0], 4)
    assert sent.at_ns[0] == 9


def test_what_has_not_come_is_lost_and_its_traces_have_no_delay():
    counted = tally(all_sent(), seen_at(5, *(sending.content for sending in SENDINGS[:-1])))
    assert counted.lost == SENDINGS[-1].spans
    assert len(counted.delays_s) == TRACES - len(SENDINGS[-1].traces)
    nothing = tally(all_sent(), Seen())
    assert nothing.lost == SPANS
    assert nothing.delay_s(95) == float("inf")


def test_what_comes_twice_does_not_make_up_for_what_is_lost():
    twice = SENDINGS[0].content
    counted = tally(all_sent(), seen_at(5, twice, twice))
    assert counted.repeated == SENDINGS[0].spans
    assert counted.lost == SPANS - SENDINGS[0].spans


def test_spans_of_others_are_counted_beside():
    request = ExportTraceServiceRequest.FromString(SENDINGS[0].content)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.span_id = b"of lanes"
    seen = seen_at(5, request.SerializeToString())
    assert seen.others == 1
    assert tally(all_sent(), seen).received == SENDINGS[0].spans - 1


def test_ledgers_are_read_as_they_were_written(tmp_path: Path):
    sent, seen = all_sent(), seen_at(5, SENDINGS[0].content)
    sent.again, sent.seconds, seen.others = 3, 2.5, 7
    sent.write(tmp_path / "sent.json")
    seen.write(tmp_path / "seen.json")
    assert Sent.read(tmp_path / "sent.json") == sent
    assert Seen.read(tmp_path / "seen.json") == seen
