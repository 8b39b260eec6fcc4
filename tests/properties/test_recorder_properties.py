"""Whatever marks arrive, a recording tiles its call."""

from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor, Recording
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import AttemptOutcome, ContentKind, StreamEnd

START_NS = 1_000
instants = st.integers(min_value=0, max_value=100_000)
contents = st.none() | st.sampled_from(ContentKind)


@st.composite
def marks(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """Any marks in any order, at any instants."""
    one = st.one_of(
        st.tuples(st.just("enter"), st.sampled_from(Phase), instants),
        st.tuples(st.just("leave"), instants),
        st.tuples(st.just("begin_attempt"), instants),
        st.tuples(
            st.just("fail_attempt"), instants, st.sampled_from(AttemptOutcome), st.just("503")
        ),
        st.tuples(st.just("body_received"), instants),
        st.tuples(st.just("received"), instants, instants, contents),
        st.tuples(st.just("tool_call"), st.text(max_size=3), instants),
    )
    return draw(st.lists(one, max_size=30))


def record(
    sequence: list[tuple[object, ...]],
    end_ns: int,
    stream_end: StreamEnd | None,
    is_told_apart: bool = True,
) -> Recording:
    recorder = PhaseRecorder(START_NS, Anchor(0, 0, 0), stall_threshold_ns=500)
    has_attempt = False
    for name, *arguments in sequence:
        has_attempt = has_attempt or name == "begin_attempt"
        if has_attempt or name != "fail_attempt":
            getattr(recorder, str(name))(*arguments)
    return recorder.finish(end_ns, stream_end, is_told_apart=is_told_apart)


@given(marks(), instants, st.none() | st.sampled_from(StreamEnd), st.booleans())
def test_phases_never_overlap(sequence, end_ns, stream_end, is_told_apart):
    recording = record(sequence, end_ns, stream_end, is_told_apart)
    edges = [recording.start_ns]
    for phase in recording.phases:
        edges += [phase.start_ns, phase.end_ns]
    edges.append(recording.end_ns)
    assert edges == sorted(edges)
    assert all(phase.end_ns > phase.start_ns for phase in recording.phases)


@given(marks(), instants, st.none() | st.sampled_from(StreamEnd), st.booleans())
def test_phases_and_gaps_sum_to_the_call(sequence, end_ns, stream_end, is_told_apart):
    recording = record(sequence, end_ns, stream_end, is_told_apart)
    phases_ns = sum(phase.end_ns - phase.start_ns for phase in recording.phases)
    assert phases_ns + recording.gap_ns == recording.end_ns - recording.start_ns
    assert recording.gap_ns >= 0


@given(marks(), instants, st.none() | st.sampled_from(StreamEnd), st.booleans())
def test_phases_belong_to_attempts_that_were_made(sequence, end_ns, stream_end, is_told_apart):
    recording = record(sequence, end_ns, stream_end, is_told_apart)
    numbers = [attempt.number for attempt in recording.attempts]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(phase.attempt in {0, *numbers} for phase in recording.phases)
    assert all(phase.attempt == 0 for phase in recording.phases if phase.phase is Phase.BACKOFF)


@given(marks(), instants)
def test_a_call_that_is_not_streamed_has_no_stream_phases(sequence, end_ns):
    marked = [each for each in sequence if each[0] != "enter"]
    recording = record(marked, end_ns, None)
    kinds = {phase.phase for phase in recording.phases}
    assert not kinds & {Phase.FIRST_CONTENT, Phase.STREAM}
    assert recording.stream is None


steps = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=900),
        st.integers(min_value=0, max_value=900),
        contents,
    ),
    min_size=1,
    max_size=20,
)


@given(steps)
def test_stream_time_is_either_gaps_or_consumer(pulls):
    """From the first event to the last, time is inside a pull or between two of them."""
    recorder = PhaseRecorder(START_NS, Anchor(0, 0, 0), stall_threshold_ns=500)
    now_ns = START_NS
    events: list[tuple[int, int, ContentKind | None]] = []
    consumed_ns = 0
    for held_ns, waited_ns, content in pulls:
        consumed_ns += held_ns if events else 0
        recorder.received(now_ns + held_ns, now_ns + held_ns + waited_ns, content)
        now_ns += held_ns + waited_ns
        events.append((now_ns, consumed_ns, content))
    account = recorder.finish(now_ns, StreamEnd.COMPLETE).stream
    assert account is not None
    assert account.gap_total_ns + consumed_ns == events[-1][0] - events[0][0]
    assert (account.chunk_count, sum(account.gap_buckets)) == (len(pulls), len(pulls) - 1)
    useful = [each for each in events if each[2] is not None]
    assert account.consumer_ns == (useful or events)[-1][1]
