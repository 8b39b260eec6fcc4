"""Attempts of a call, in seconds of a manual clock: backoff, and what is counted from where."""

import pytest

from llmlat_otel.settings import PhasesMode, Settings
from llmlat_otel.testing import MS, FakeStream
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import ContentKind

TEXT = ContentKind.TEXT
BACKOFF = duration_attribute(Phase.BACKOFF)
TTFC = names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT
IN_ATTRIBUTES = pytest.mark.parametrize(
    "record", [Settings(phases=PhasesMode.ATTRIBUTES)], indirect=True
)


def streamed(library, attempts, events):
    """A call whose attempts take so long, with so long between them, and then stream."""

    def create():
        for status, duration_ms, pause_ms in attempts:
            library._transport = lambda *_, status=status, ms=duration_ms: answer(
                library, status, ms
            )
            library.send(status)
            library.wait(pause_ms)
        return FakeStream(library.clock, events)

    return library.create(create, model="m", stream=True)


def answer(library, status, duration_ms):
    library.wait(duration_ms)
    return type("Response", (), {"status_code": status, "headers": {}})


def spans(record):
    every = record.tree()
    (operation,) = [span for span in every if span["name"] == "chat m"]
    attempts = [span for span in every if span["name"] == "attempt m"]
    return operation, sorted(attempts, key=lambda span: span["start_ns"])


# `library.send` takes 1 ms before an attempt begins.


#  0            4          4.2           5       6
#  | attempt 1  |  backoff  | attempt 2  | stream |
@IN_ATTRIBUTES
def test_tf_07_each_time_to_first_content_has_one_anchor(library, record):
    attempts = [(503, 3999, 199), (200, 0, 0)]
    list(streamed(library, attempts, [(800 * MS, TEXT), (1000 * MS, TEXT)]))
    operation, (first, second) = spans(record)
    assert operation["end_ns"] == 6000 * MS
    assert operation["attributes"][TTFC] == 5.0
    assert second["attributes"][TTFC] == 0.8
    assert TTFC not in first["attributes"]
    assert operation["attributes"][BACKOFF] == 0.2
    assert (first["start_ns"], first["end_ns"]) == (1 * MS, 4000 * MS)
    assert (second["start_ns"], second["end_ns"]) == (4200 * MS, 6000 * MS)


@IN_ATTRIBUTES
def test_in_10_attempts_are_told_apart_and_backoff_from_them(library, record):
    attempts = [(429, 99, 999), (500, 100, 499), (200, 0, 0)]
    list(streamed(library, attempts, [(300 * MS, TEXT)]))
    operation, made = spans(record)
    said = [each["attributes"] for each in made]
    assert [each[names.LLMLAT_ATTEMPT_OUTCOME] for each in said] == ["failed", "failed", "won"]
    assert [each.get(names.ERROR_TYPE) for each in said] == ["429", "500", None]
    assert [each.get(TTFC) for each in said] == [None, None, 0.3]
    assert operation["attributes"][BACKOFF] == 1.5
    assert operation["attributes"][TTFC] == 0.1 + 1.0 + 0.1 + 0.5 + 0.3
    assert operation["attributes"][names.HTTP_REQUEST_RESEND_COUNT] == 2


@IN_ATTRIBUTES
def test_the_only_attempt_has_no_span_to_say_it_on(library, record):
    list(streamed(library, [(200, 0, 0)], [(300 * MS, TEXT)]))
    operation, made = spans(record)
    assert made == []
    assert operation["attributes"][TTFC] == 0.301


def test_headers_of_a_response_that_says_no_are_not_read(library, record):
    def create():
        library._transport = lambda *_: headed(503, "1")
        library.send(503)
        library._transport = lambda *_: headed(200, "2")
        library.send()
        return "response"

    library.create(create, model="m")
    operation, _ = spans(record)
    assert operation["attributes"][names.LLMLAT_REPORTED_PROCESSING_DURATION] == 0.002


def headed(status, processing_ms):
    headers = {"openai-processing-ms": processing_ms}
    return type("Response", (), {"status_code": status, "headers": headers})
