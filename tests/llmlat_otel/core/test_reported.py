"""What llama.cpp says of itself."""

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor, Reported
from llmlat_otel.core.reported import read_llama_progress, read_llama_timings
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence

TIMINGS = {"cache_n": 3, "prompt_n": 20, "prompt_ms": 62.5, "predicted_n": 9, "predicted_ms": 148.0}


def recorder():
    return PhaseRecorder(0, Anchor(0, 0, 0), 1)


def test_timings():
    marks = recorder()
    facts: Attributes = {}
    read_llama_timings(TIMINGS, marks, facts)
    assert marks.finish(1).reported == (
        Reported(Phase.PREFILL, 62_500_000, Evidence.REPORTED),
        Reported(Phase.DECODE, 148_000_000, Evidence.REPORTED),
    )
    assert facts == {
        names.LLMLAT_PREFILL_COMPUTED_TOKENS: 20,
        names.LLMLAT_PREFILL_CACHED_TOKENS: 3,
        names.LLMLAT_DECODE_TOKENS: 8,
    }


def test_what_is_missing_or_nonsense_is_absent_never_zero():
    marks = recorder()
    facts: Attributes = {}
    read_llama_timings({"prompt_ms": None, "predicted_ms": -1, "predicted_n": 0}, marks, facts)
    assert marks.finish(1).reported == ()
    assert facts == {}


def test_the_first_progress_bounds_the_queue():
    marks = recorder()
    marks.begin_attempt(0)
    marks.enter(Phase.WAIT, 100)
    read_llama_progress(350, marks)
    read_llama_progress(900, marks)
    assert marks.finish(1_000).reported == (Reported(Phase.QUEUE, 250, Evidence.BOUNDED),)


def test_without_a_known_send_there_is_no_bound():
    marks = recorder()
    read_llama_progress(350, marks)
    assert marks.finish(1_000).reported == ()
