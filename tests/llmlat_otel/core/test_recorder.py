"""What marks become: phases with the contract's edges."""

import pytest

from llmlat_otel.core.recorder import MAX_TOOL_CALLS, PhaseRecorder
from llmlat_otel.core.recording import Anchor, Recording
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import AttemptOutcome, AttemptReason, ContentKind, Evidence, StreamEnd

ANCHOR = Anchor(monotonic_ns=0, wall_ns=1_000_000, uncertainty_ns=5)


def recorder(start_ns: int = 0) -> PhaseRecorder:
    return PhaseRecorder(start_ns, ANCHOR, stall_threshold_ns=50)


def sent(start_ns: int = 0) -> PhaseRecorder:
    """A recorder whose request was sent at 30: a new connection, then the body."""
    marks = recorder(start_ns)
    marks.begin_attempt(10)
    marks.enter(Phase.POOL_WAIT, 11)
    marks.enter(Phase.CONNECT, 12)
    marks.leave(20)
    marks.enter(Phase.SEND, 21)
    marks.enter(Phase.WAIT, 30)
    return marks


def lines(recording: Recording) -> list[tuple[str, int, int]]:
    return [(each.phase.value, each.start_ns, each.end_ns) for each in recording.phases]


#  0       10  12      20 21   30        40             60        90        100
#  |prepare|.|pw|connect|.|send|  wait   |first_content |  stream |finalize |
def test_a_streamed_call():
    marks = sent()
    marks.received(31, 40, None)
    marks.received(42, 60, ContentKind.TEXT)
    marks.received(65, 90, ContentKind.TEXT)
    marks.received(91, 95, None)
    recording = marks.finish(100, StreamEnd.COMPLETE)
    assert lines(recording) == [
        ("prepare", 0, 10),
        ("pool_wait", 11, 12),
        ("connect", 12, 20),
        ("send", 21, 30),
        ("wait", 30, 40),
        ("first_content", 40, 60),
        ("stream", 60, 90),
        ("finalize", 90, 100),
    ]
    assert recording.gap_ns == 2
    assert not any(phase.truncated for phase in recording.phases)
    assert recording.stream is not None
    assert recording.stream.first_chunk_ns == 40
    assert recording.stream.first_content_ns == 60
    assert recording.stream.gap_total_ns == 18 + 25 + 4
    assert recording.stream.consumer_ns == 2 + 5, "the time after the last content is finalize"


def test_a_call_that_is_not_streamed():
    marks = sent()
    marks.body_received(70)
    marks.body_received(80)
    recording = marks.finish(100)
    assert lines(recording)[-2:] == [("wait", 30, 70), ("finalize", 70, 100)]
    assert recording.attempts[0].outcome is AttemptOutcome.WON
    assert recording.stream is None


def test_the_first_event_may_be_the_first_content():
    marks = sent()
    marks.received(31, 40, ContentKind.TEXT)
    marks.received(41, 50, ContentKind.TEXT)
    assert lines(marks.finish(60, StreamEnd.COMPLETE))[-3:] == [
        ("wait", 30, 40),
        ("stream", 40, 50),
        ("finalize", 50, 60),
    ]


def test_a_tool_call_is_the_first_content_of_a_turn_without_text():
    marks = sent()
    marks.received(31, 40, ContentKind.TOOL_CALL)
    account = marks.finish(60, StreamEnd.COMPLETE).stream
    assert account is not None
    assert (account.first_content_ns, account.first_content_kind) == (40, ContentKind.TOOL_CALL)


def test_text_counts_before_an_earlier_tool_call():
    marks = sent()
    marks.received(31, 40, ContentKind.TOOL_CALL)
    marks.received(41, 50, ContentKind.TEXT)
    account = marks.finish(60, StreamEnd.COMPLETE).stream
    assert account is not None
    assert (account.first_content_ns, account.first_content_kind) == (50, ContentKind.TEXT)


def test_a_stream_without_content_runs_from_its_first_to_its_last_event():
    marks = sent()
    marks.received(31, 40, None)
    marks.received(41, 50, None)
    recording = marks.finish(60, StreamEnd.COMPLETE)
    assert lines(recording)[-2:] == [("stream", 40, 50), ("finalize", 50, 60)]
    assert recording.stream is not None
    assert recording.stream.first_content_ns is None


def test_a_stream_that_is_closed_before_any_content_has_a_truncated_first_content():
    marks = sent()
    marks.received(31, 40, None)
    phase = marks.finish(60, StreamEnd.CLOSED_EARLY).phases[-1]
    assert (phase.phase, phase.start_ns, phase.end_ns) == (Phase.FIRST_CONTENT, 40, 60)
    assert phase.truncated


def test_a_stream_that_is_cut_short_is_truncated():
    marks = sent()
    marks.received(31, 40, ContentKind.TEXT)
    marks.received(41, 50, ContentKind.TEXT)
    recording = marks.finish(60, StreamEnd.FAILED, "ReadError")
    stream = next(each for each in recording.phases if each.phase is Phase.STREAM)
    assert stream.truncated
    assert recording.attempts[0].outcome is AttemptOutcome.FAILED


def test_a_call_that_never_reached_the_transport_is_all_prepare():
    recording = recorder().finish(25, error_type="TypeError")
    assert lines(recording) == [("prepare", 0, 25)]
    assert recording.phases[0].truncated
    assert recording.attempts == ()


def test_a_retry_makes_attempts_and_backoff():
    marks = sent()
    marks.fail_attempt(40, AttemptOutcome.FAILED, "503")
    marks.begin_attempt(140)
    marks.enter(Phase.SEND, 141)
    marks.enter(Phase.WAIT, 150)
    marks.body_received(170)
    recording = marks.finish(180)
    assert [(each.phase.value, each.attempt) for each in recording.phases] == [
        ("prepare", 0),
        ("pool_wait", 1),
        ("connect", 1),
        ("send", 1),
        ("wait", 1),
        ("backoff", 0),
        ("send", 2),
        ("wait", 2),
        ("finalize", 2),
    ]
    assert [each.truncated for each in recording.phases if each.phase is Phase.WAIT] == [
        True,
        False,
    ]
    first, second = recording.attempts
    assert (first.reason, first.outcome, first.error_type) == (
        AttemptReason.INITIAL,
        AttemptOutcome.FAILED,
        "503",
    )
    assert (first.start_ns, first.end_ns) == (10, 40)
    assert (second.reason, second.outcome) == (AttemptReason.RETRY, AttemptOutcome.WON)
    assert (second.start_ns, second.end_ns) == (140, 180)


def test_the_last_failure_is_followed_by_no_backoff():
    marks = sent()
    marks.fail_attempt(40, AttemptOutcome.FAILED, "503")
    recording = marks.finish(60, error_type="InternalServerError")
    assert lines(recording)[-1] == ("wait", 30, 40)
    assert recording.gap_ns == 2 + 20


def test_a_failed_attempt_keeps_its_own_response_to_itself():
    marks = sent()
    marks.body_received(35)
    marks.fail_attempt(40, AttemptOutcome.FAILED, "503")
    marks.begin_attempt(50)
    recording = marks.finish(60)
    wait = next(each for each in recording.phases if each.phase is Phase.WAIT)
    assert (wait.end_ns, wait.truncated) == (35, False)
    assert Phase.FINALIZE not in {each.phase for each in recording.phases}


def test_an_attempt_that_nobody_called_a_failure_has_no_known_outcome():
    marks = sent()
    marks.begin_attempt(50)
    first, second = marks.finish(60).attempts
    assert (first.outcome, first.error_type, first.end_ns) == (None, None, 50)
    assert second.outcome is AttemptOutcome.WON


def test_tls_continues_the_connection_that_tcp_began():
    marks = recorder()
    marks.begin_attempt(10)
    marks.enter(Phase.CONNECT, 12)
    marks.leave(20)
    marks.enter(Phase.CONNECT, 21)
    marks.leave(40)
    assert ("connect", 12, 40) in lines(marks.finish(50))


def test_an_instant_before_the_last_cut_is_moved_up_to_it():
    marks = recorder()
    marks.begin_attempt(20)
    marks.enter(Phase.SEND, 15)
    marks.enter(Phase.WAIT, 30)
    assert lines(marks.finish(10)) == [("prepare", 0, 20), ("send", 20, 30)]


def test_stalls_are_gaps_beyond_the_threshold():
    marks = sent()
    for pulled, received in ((31, 40), (40, 90), (95, 146)):
        marks.received(pulled, received, ContentKind.TEXT)
    account = marks.finish(150, StreamEnd.COMPLETE).stream
    assert account is not None
    assert (account.stall_count, account.stall_ns, account.gap_max_ns) == (1, 51, 51)


def test_an_abandoned_call_ends_at_its_last_event():
    marks = sent()
    assert marks.last_event_ns == 30
    marks.received(31, 40, ContentKind.TEXT)
    assert marks.last_event_ns == 40


def test_a_response_of_which_only_the_head_came_was_waited_for_until_then():
    marks = sent()
    marks.head_received(44)
    phase = marks.finish(marks.last_event_ns, StreamEnd.ABANDONED).phases[-1]
    assert (phase.phase, phase.end_ns, phase.truncated) == (Phase.WAIT, 44, True)


def test_tool_calls_are_kept_up_to_a_bound():
    marks = recorder()
    for index in range(MAX_TOOL_CALLS + 1):
        marks.tool_call(f"call-{index}", index)
    assert len(marks.finish(100).tool_calls) == MAX_TOOL_CALLS


def test_the_last_report_of_a_phase_counts():
    marks = recorder()
    marks.report(Phase.DECODE, 5, Evidence.REPORTED)
    marks.report(Phase.DECODE, 9, Evidence.REPORTED)
    assert [each.duration_ns for each in marks.finish(10).reported] == [9]


@pytest.mark.parametrize(("marks", "expected"), [(sent(), 30), (recorder(), None)])
def test_when_the_request_was_sent(marks, expected):
    assert marks.request_sent_ns() == expected


#  0    30    33   40   42   50          90
#  |... |wait |....|pw|.|send|   wait    |finalize
def test_a_body_before_the_response_is_a_redirects():
    marks = sent()
    marks.body_received(33)
    marks.enter(Phase.POOL_WAIT, 40)
    marks.enter(Phase.SEND, 42)
    marks.enter(Phase.WAIT, 50)
    marks.body_received(90)
    assert lines(marks.finish(95))[3:] == [
        ("send", 21, 30),
        ("wait", 30, 33),
        ("pool_wait", 40, 42),
        ("send", 42, 50),
        ("wait", 50, 90),
        ("finalize", 90, 95),
    ]


#  0       10  12      20 21   30        40                    70        80
#  |prepare|.|pw|connect|.|send|  wait   |        stream       |finalize |
def test_a_stream_whose_events_nobody_tells_apart():
    marks = sent()
    for at_ns in (40, 55, 70):
        marks.body_received(at_ns)
    recording = marks.finish(80, StreamEnd.COMPLETE, is_told_apart=False)
    assert lines(recording)[-3:] == [("wait", 30, 40), ("stream", 40, 70), ("finalize", 70, 80)]
    assert recording.stream is not None
    assert recording.stream.chunk_count is None
    assert recording.stream.first_chunk_ns is None
    assert not any(phase.truncated for phase in recording.phases)


def test_one_that_is_cut_short_is_truncated():
    marks = sent()
    for at_ns in (40, 70):
        marks.body_received(at_ns)
    recording = marks.finish(80, StreamEnd.CLOSED_EARLY, is_told_apart=False)
    assert [each.truncated for each in recording.phases if each.phase is Phase.STREAM] == [True]


def test_one_of_which_nothing_was_read_is_waited_for_to_its_end():
    recording = sent().finish(80, StreamEnd.ABANDONED, is_told_apart=False)
    assert lines(recording)[-1] == ("wait", 30, 80)
    assert recording.stream is not None
    assert recording.stream.chunk_count is None


def test_an_incomplete_stream_is_no_failure():
    marks = sent()
    marks.received(31, 40, ContentKind.TEXT)
    recording = marks.finish(60, StreamEnd.INCOMPLETE)
    assert recording.attempts[0].outcome is AttemptOutcome.WON
    assert recording.stream is not None
    assert recording.stream.end is StreamEnd.INCOMPLETE
