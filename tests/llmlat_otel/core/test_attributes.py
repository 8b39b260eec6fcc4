"""What others have said: only text that can be sent, and numbers, whatever they have said."""

import math
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import llmlat_otel
from llmlat_otel.core.attributes import LONGEST, error_type, of_facts, text
from llmlat_otel.core.call import timed
from llmlat_otel.core.guard import faults
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.testing import MS, FakeStream
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind
from tests.llmlat_otel.core.conftest import FakeReader


class Model(pydantic.BaseModel):
    a: int = 1


class Unspeakable:
    """Raises at whatever it is asked."""

    def __str__(self) -> str:
        raise LookupError

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise LookupError

    def __eq__(self, other: object) -> bool:
        raise LookupError

    __hash__ = None  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise LookupError


class Shouting(str):
    """A text that says another one."""

    def __str__(self) -> str:
        raise LookupError


def itself() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["itself"] = loop
    return loop


SURROGATE = "a\ud800b"
STRANGE: dict[str, Any] = {
    "a pydantic object": Model(),
    "a function": itself,
    "bytes": b"m",
    "NaN": math.nan,
    "a dict that refers to itself": itself(),
    "what cannot be shown": Unspeakable(),
    "None": None,
}
SAID = {**STRANGE, "a lone surrogate": SURROGATE, "a long text": "m" * 100_000}


# By name, since pytest asks the values of its rows what they are.
@pytest.mark.parametrize("what", STRANGE)
def test_in_09_what_is_no_text_is_none(what):
    assert text(STRANGE[what]) is None


def test_in_09_a_lone_surrogate_is_replaced():
    assert text(SURROGATE) == "a?b"


def test_a_text_of_a_kind_of_its_own_is_taken_as_the_text_that_it_is():
    plain = text(Shouting("m"))
    assert (plain, type(plain)) == ("m", str)


def test_a_long_text_is_cut():
    assert text("é" * (LONGEST + 1)) == "é" * LONGEST


@given(st.text(st.characters(categories=None), max_size=2 * LONGEST))
def test_any_text_can_be_sent(value):
    said = text(value)
    assert said is not None
    assert len(said) <= LONGEST
    assert said.encode().decode() == said
    assert text(said) == said


def test_numbers_are_taken_as_far_as_they_can_be_sent():
    facts = {"a": 1, "b": True, "c": 0.5, "d": 2**63, "e": -(2**63)}
    assert of_facts(facts, ours_only=False) == {"a": 1, "b": True, "c": 0.5, "e": -(2**63)}


def test_several_texts_are_taken_one_by_one():
    facts = {"a": ("stop", SURROGATE, b"x"), "b": ["a list is none"]}
    assert of_facts(facts, ours_only=False) == {"a": ("stop", "a?b")}


def test_only_our_own_names_are_said_on_others_spans():
    facts = {names.LLMLAT_DECODE_TOKENS: 3, names.GEN_AI_USAGE_OUTPUT_TOKENS: 4}
    assert of_facts(facts, ours_only=True) == {names.LLMLAT_DECODE_TOKENS: 3}


def test_an_error_of_a_strange_class_has_a_name_that_can_be_sent():
    strange = type("Strange", (Exception,), {"__module__": 7, "__qualname__": SURROGATE})
    assert error_type(strange()) == "a?b"


# A whole call of which nothing is what it should be


class StrangeReader(FakeReader):
    """Passes on what its call was given, as a careless reader would."""

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        super().__init__(instance, kwargs, reasoning_is_content)
        self.said = kwargs["said"]
        self.request = self.request._replace(model=self.said, server_address=self.said)

    def event(self, event: Any, at_ns: int, recorder: Any) -> ContentKind | None:
        facts: dict[str, Any] = self.facts
        facts[names.GEN_AI_RESPONSE_MODEL] = facts[names.GEN_AI_RESPONSE_ID] = self.said
        facts[names.GEN_AI_RESPONSE_FINISH_REASONS] = (self.said,)
        recorder.tool_call(self.said, at_ns)
        return ContentKind.TEXT


@pytest.mark.parametrize("what", SAID)
def test_in_09_a_call_of_which_nothing_is_what_it_should_be_is_exported(
    clock, record, caplog, what
):
    said = SAID[what]
    before = faults()
    create = wrap(lambda said: FakeStream(clock, [(MS, None)]), timed("strange", StrangeReader))
    assert len(list(create(said=said))) == 1
    assert faults() == before
    assert len(encode_spans(record.spans).SerializeToString()) < 10_000
    assert any(span.name.startswith("chat") for span in record.spans)
    assert caplog.records == [], "an attribute that cannot be encoded is logged as an error"


@pytest.mark.parametrize("what", SAID)
def test_in_09_the_names_that_an_application_gives_are_taken_as_far_as_they_are_text(record, what):
    said = SAID[what]
    if not callable(said):  # That is a decorator without its parentheses.
        with llmlat_otel.tool(said, call_id=said), llmlat_otel.retrieval(said):
            pass
        with llmlat_otel.agent(said):
            pass
    assert encode_spans(record.spans).ByteSize() < 10_000


def test_without_us_a_lone_surrogate_loses_the_whole_batch(record):
    tracer = record.tracer_provider.get_tracer("app")
    tracer.start_span("good").end()
    tracer.start_span(f"chat {SURROGATE}").end()
    with pytest.raises(UnicodeEncodeError):
        encode_spans(record.spans)
