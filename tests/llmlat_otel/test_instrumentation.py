"""All that is supported, instrumented and put back, on the real libraries."""

import importlib
from functools import reduce

import httpx2
import openai
import pytest

import llmlat_otel
from llmlat_otel import instrumentation
from llmlat_otel.instrumentation import INSTRUMENTORS
from llmlat_otel.testing import recorded
from llmlat_semconv import attributes as names

COMPLETION = {
    "id": "c-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-2",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
    ],
}
STREAM = (
    b'data: {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-2", '
    b'"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n' * 3 + b"data: [DONE]\n\n"
)


@pytest.fixture(autouse=True)
def _all_are_put_back():
    yield
    llmlat_otel.uninstrument()


@pytest.fixture
def client():
    """A client whose answers are made here."""

    def answer(request):
        if b'"stream":true' in request.content.replace(b" ", b""):
            return httpx2.Response(200, content=STREAM)
        return httpx2.Response(200, json=COMPLETION)

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    with openai.OpenAI(base_url="http://test/v1", api_key="k", http_client=transport) as made:
        yield made


def ask(client, **more):
    return client.chat.completions.create(model="m", messages=[], **more)


def identities():
    """The id of every attribute of everything that holds a target."""
    owners = {}
    for instrumentor in INSTRUMENTORS.values():
        for target in instrumentor.targets:
            try:
                module = importlib.import_module(target.module)
                owner = reduce(getattr, target.attribute.split(".")[:-1], module)
            except (ImportError, AttributeError):  # This version has none.
                continue
            owners[f"{target.module}:{target.attribute}"] = {
                name: id(value) for name, value in vars(owner).items() if name != "__doc__"
            }
    return owners


def states():
    return {
        each.name: {target.state.value for target in each.targets}
        for each in instrumentation.states()
    }


def test_in_04_every_attribute_is_the_original_object_after_uninstrument():
    before = identities()
    llmlat_otel.instrument()
    instrumented = identities()
    assert {each for each in before if before[each] != instrumented[each]} == set(before)
    llmlat_otel.uninstrument()
    assert identities() == before


def test_in_04_instrumenting_twice_is_one_span_per_call(client):
    llmlat_otel.instrument()
    llmlat_otel.instrument()
    with recorded() as record:
        ask(client)
    assert [span.name for span in record.spans if "phase" not in span.name] == ["chat m"]


def test_a_stream_that_is_open_as_all_is_put_back_is_timed_to_its_end(client):
    before = identities()
    llmlat_otel.instrument()
    with recorded() as record:
        stream = ask(client, stream=True)
        next(stream)
        llmlat_otel.uninstrument()
        assert identities() == before
        assert len(list(stream)) == 2
        assert len(list(ask(client, stream=True))) == 3, "and this one is not timed"
    (span,) = [each for each in record.spans if "phase" not in each.name]
    assert span.attributes is not None
    assert span.attributes[names.LLMLAT_STREAM_CHUNK_COUNT] == 3


def test_switching_off_and_on(monkeypatch, client):
    monkeypatch.setenv("LLMLAT_DISABLED", "openai")
    llmlat_otel.instrument()
    assert states()["openai"] == {"off"}
    assert "wrapped" in states()["httpx"]
    with recorded() as record:
        ask(client)
    assert record.spans == ()
    monkeypatch.delenv("LLMLAT_DISABLED")
    llmlat_otel.instrument()
    assert "wrapped" in states()["openai"]


@pytest.mark.parametrize("variable", ["OTEL_SDK_DISABLED", "LLMLAT_DISABLED"])
def test_nothing_is_wrapped_at_all(variable, monkeypatch):
    before = identities()
    monkeypatch.setenv(variable, "true")
    llmlat_otel.instrument()
    assert identities() == before
    assert set.union(*states().values()) == {"off"}
    assert all(each.is_disabled for each in instrumentation.states())


def test_only_what_is_named_is_timed():
    llmlat_otel.uninstrument()
    instrumentation.instrument("httpx", "vllm")
    found = states()
    assert "wrapped" in found.pop("httpx")
    assert found.pop("vllm") != {"off"}
    assert set().union(*found.values()) == {"off"}
    llmlat_otel.instrument()
    assert all("off" not in each for each in states().values())


def test_an_unknown_name_is_warned_of_once(monkeypatch, caplog):
    monkeypatch.setattr(instrumentation, "_refused", {})
    monkeypatch.setenv("LLMLAT_DISABLED", "open_ai")
    for _ in range(2):
        llmlat_otel.instrument()
        llmlat_otel.uninstrument()
    (warned,) = caplog.messages
    assert "open_ai" in warned
    assert all(name in warned for name in INSTRUMENTORS)
    assert instrumentation.refused() == (warned,)
