"""What is read of text completions, whole and streamed, and of embeddings."""

import pytest
from openai.types import Completion, CreateEmbeddingResponse

from llmlat_otel.instrumentors.openai.completions import CompletionReader
from llmlat_otel.instrumentors.openai.embeddings import EmbeddingReader
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind, OperationName
from tests.llmlat_otel.instrumentors.answers import INSTANCE, recorder

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
FACTS = {
    names.GEN_AI_RESPONSE_MODEL: "m-2",
    names.GEN_AI_RESPONSE_ID: "c-1",
    names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    names.GEN_AI_USAGE_INPUT_TOKENS: 3,
    names.GEN_AI_USAGE_OUTPUT_TOKENS: 2,
}


def reader():
    return CompletionReader(INSTANCE, {"model": "m"}, reasoning_is_content=False)


def completion(text, finish_reason=None, **more):
    choices = [{"index": 0, "text": text, "finish_reason": finish_reason}]
    return Completion.construct(
        id="c-1", model="m-2", choices=[] if text is None else choices, **more
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("Hi", ContentKind.TEXT), ("", None), (None, None), ([1], None)]
)
def test_content(text, expected):
    assert reader().event(completion(text), 1, recorder()) is expected


def test_a_stream_and_a_whole_completion_say_the_same():
    streamed, whole, marks = reader(), reader(), recorder()
    for event in (completion("Hi"), completion("", "stop"), completion(None, usage=USAGE)):
        assert not whole.is_terminated
        streamed.event(event, 1, marks)
    whole.response(completion("Hi", "stop", usage=USAGE), marks)
    assert streamed.facts == whole.facts == FACTS
    assert streamed.is_terminated
    assert whole.is_terminated
    assert whole.request.operation is OperationName.TEXT_COMPLETION


def test_embeddings():
    read = EmbeddingReader(INSTANCE, {"model": "m"}, reasoning_is_content=False)
    assert read.request.operation is OperationName.EMBEDDINGS
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    said = CreateEmbeddingResponse.construct(data=[], model="m-2", usage=usage)
    read.response(said, recorder())
    assert read.facts == {
        names.GEN_AI_RESPONSE_MODEL: "m-2",
        names.GEN_AI_USAGE_INPUT_TOKENS: 3,
    }
    assert read.is_terminated
