"""The account of a gateway's call, and what the request that it is made for is told."""

from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.relayed import ServedRecorder, UpstreamRecorder
from llmlat_otel.core.serving import Served
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import ContentKind, StreamEnd

ANCHOR = Anchor(0, 0, 0)
SENDING = (Phase.POOL_WAIT, Phase.CONNECT, Phase.SEND, Phase.WAIT)


def told(recorder, parts, end=StreamEnd.COMPLETE, **more):
    """Phases and gap of a call that sends at 10, 20, 30, 40 and has its body at these instants."""
    recorder.begin_attempt(5)
    for number, phase in enumerate(SENDING, start=1):
        recorder.enter(phase, 10 * number)
    for at_ns in parts:
        recorder.part_received(at_ns)
    made = recorder.finish(100, end, is_told_apart=False, **more)
    return [(each.phase.value, each.start_ns, each.end_ns) for each in made.phases], made


def test_sending_and_waiting_are_one_phase_of_a_gateway_and_so_is_the_stream():
    phases, made = told(UpstreamRecorder(Served(0), 0, ANCHOR, 0), [60, 70, 90])
    assert phases == [
        ("pool_wait", 10, 20),
        ("connect", 20, 30),
        ("upstream", 30, 60),
        ("upstream_stream", 60, 90),
        ("finalize", 90, 100),
    ]
    assert made.gap_ns == 10, "a gateway prepares nothing"
    assert made.stream is not None
    assert made.stream.chunk_count is None


def test_a_stream_of_one_part_and_a_response_that_is_none_have_no_stream():
    one, _ = told(UpstreamRecorder(Served(0), 0, ANCHOR, 0), [60])
    whole, made = told(UpstreamRecorder(Served(0), 0, ANCHOR, 0), [60, 90], None)
    assert [each[0] for each in one] == ["pool_wait", "connect", "upstream", "finalize"]
    assert whole == one
    assert made.stream is None


def test_what_was_cut_off_says_so():
    _, made = told(
        UpstreamRecorder(Served(0), 0, ANCHOR, 0), [], None, error_type="E", cancelled=True
    )
    assert [(each.phase, each.truncated) for each in made.phases][-1] == (Phase.UPSTREAM, True)


def test_the_request_is_told_when_it_came():
    served = Served(0)
    told(UpstreamRecorder(served, 0, ANCHOR, 0), [60, 90])
    served.sent(served.sends(), 95)
    (relay,) = served.after_the_answer(99, is_truncated=False)
    assert (relay.phase, relay.start_ns, relay.end_ns) == (Phase.RELAY, 90, 95)
    assert served.hold_ns == (35 + 5, 35)


def test_of_a_response_that_never_came_it_is_told_no_end():
    served = Served(0)
    told(UpstreamRecorder(served, 0, ANCHOR, 0), [], None, error_type="E")
    assert list(served.after_the_answer(99, is_truncated=False)) == []


instants = st.lists(st.integers(0, 200), max_size=12).map(sorted)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from((*SENDING, None)), st.integers(0, 100)), max_size=8
    ).map(lambda steps: sorted(steps, key=lambda step: step[1])),
    parts=instants,
    end=st.sampled_from((None, *StreamEnd)),
    error=st.sampled_from((None, "E")),
)
def test_a_gateways_account_has_all_of_a_clients_time(steps, parts, end, error):
    made = []
    for recorder in (PhaseRecorder(0, ANCHOR, 0), UpstreamRecorder(Served(0), 0, ANCHOR, 0)):
        recorder.begin_attempt(0)
        for phase, at_ns in steps:
            if phase is None:
                recorder.leave(at_ns)
            else:
                recorder.enter(phase, at_ns)
        for at_ns in parts:
            recorder.part_received(100 + at_ns)
        made.append(recorder.finish(400, end, error, is_told_apart=False))
    client, gateway = made
    assert gateway._replace(phases=()) == client._replace(phases=())
    sums = [sum(e.end_ns - e.start_ns for e in each.phases) + each.gap_ns for each in made]
    assert sums == [400, 400]
    ends = [0, *(each.end_ns for each in gateway.phases)]
    assert all(s.start_ns >= end for s, end in zip(gateway.phases, ends, strict=False))
    assert not {Phase.SEND, Phase.WAIT, Phase.STREAM} & {each.phase for each in gateway.phases}


def test_a_librarys_call_is_recorded_as_ever():
    served = Served(0)
    plain, recorder = PhaseRecorder(0, ANCHOR, 0), ServedRecorder(served, 0, ANCHOR, 0)
    made = []
    for each in (plain, recorder):
        each.begin_attempt(5)
        each.received(10, 20, ContentKind.TEXT)
        each.received(30, 40, ContentKind.TEXT)
        made.append(each.finish(50, StreamEnd.COMPLETE))
    assert made[0] == made[1]
    assert served.sends() == (2, 60, 20)


def test_what_a_library_prepares_is_no_part_of_the_route():
    served = Served(0)
    served.admitted(10)
    recorder = ServedRecorder(served, 25, ANCHOR, 0)
    recorder.begin_attempt(80)
    recorder.begin_attempt(95)
    phases = [(each.phase, each.start_ns, each.end_ns) for each in served.before_the_answer()]
    assert phases == [(Phase.ADMISSION, 0, 10), (Phase.ROUTE, 10, 25)]
