"""httpx and httpx2 in a call: any transport, what is sent on the way, and without a call."""

import asyncio
import inspect

import httpx
import httpx2
import pytest
from opentelemetry import baggage
from opentelemetry import context as contexts

import llmlat_otel
from llmlat_semconv import attributes as names
from tests.integration.coexistence.upstream import Upstream

ASK = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
FIRST = ["prepare", "pool_wait", "connect", "send", "wait"]
THEIRS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

each_library = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])


def parents(upstream):
    return [each["traceparent"].split("-")[2] for each in upstream.requests]


def the_id(span):
    return f"{span.get_span_context().span_id:016x}"


@pytest.fixture
def url(upstream):
    return f"{upstream.url}/chat/completions"


@each_library
def test_a_request_of_a_call_is_its_attempt(url, upstream, record, call, phases, library):
    with library.Client(trust_env=False) as client:
        answer = call(lambda: client.post(url, json=ASK))
    assert answer.json()["model"] == "m-2"
    assert phases() == [*FIRST, "finalize"]
    assert parents(upstream) == [the_id(record.spans[0])]


@each_library
def test_an_asynchronous_request_too(url, upstream, record, call, phases, library):
    async def main():
        async with library.AsyncClient(trust_env=False) as client:
            return await call(lambda: client.post(url, json=ASK))

    assert asyncio.run(main()).json()["model"] == "m-2"
    assert phases() == [*FIRST, "finalize"]
    assert parents(upstream) == [the_id(record.spans[0])]


@each_library
def test_a_body_that_is_streamed(url, record, call, phases, library):
    def ask():
        with client.stream("POST", url, json={**ASK, "stream": True}) as answer:
            assert answer.num_bytes_downloaded == 0
            return list(answer.iter_lines())

    with library.Client(trust_env=False) as client:
        assert "data: [DONE]" in call(ask)
    assert phases() == [*FIRST, "finalize"]


@each_library
def test_a_redirect_is_no_response(url, upstream, record, call, phases, library):
    upstream.statuses = [307]
    with library.Client(trust_env=False, follow_redirects=True) as client:
        assert len(call(lambda: client.post(url, json=ASK)).history) == 1
    assert phases() == [*FIRST, "pool_wait", "send", "wait", "finalize"]
    assert len(set(parents(upstream))) == 1, "it is one attempt"


@each_library
def test_a_request_goes_through_a_proxy(upstream, record, call_anyone, phases, library):
    """A proxy takes a request for somebody else as it is."""
    proxy = upstream.url.removesuffix("/v1")
    with library.Client(trust_env=False, proxy=proxy) as client:
        url = "http://127.0.0.1:9/v1/chat/completions"
        assert call_anyone(lambda: client.post(url, json=ASK)).status_code == 200
    assert phases() == [*FIRST, "finalize"]
    assert parents(upstream) == [the_id(record.spans[0])]


# ── Transports of others ─────────────────────────────────────────────────────────────────────────


async def asgi(scope, receive, send):
    seen = {name.decode(): value.decode() for name, value in scope["headers"]}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": seen["traceparent"].encode()})


@each_library
def test_an_app_that_is_called_without_a_network_is_called_by_the_attempt(
    record, call_anyone, phases, library
):
    async def main():
        transport = library.ASGITransport(asgi)
        async with library.AsyncClient(transport=transport) as client:
            return await call_anyone(lambda: client.post("http://127.0.0.1", json=ASK))

    answer = asyncio.run(main())
    assert answer.text.split("-")[2] == the_id(record.spans[0])
    assert phases() == ["prepare"], "what nobody measured is not made up"


@each_library
def test_a_mocked_answer_comes_back_as_it_was_made(record, call_anyone, phases, library):
    made = library.Response(200, json={"ok": True})
    transport = library.MockTransport(lambda request: made)
    with library.Client(transport=transport) as client:
        answer = call_anyone(lambda: client.post("http://127.0.0.1", json=ASK))
    assert answer is made
    assert phases() == ["prepare"]


@each_library
def test_a_transport_around_the_librarys_own_is_measured_beneath(
    url, record, call, phases, library
):
    class Around(library.BaseTransport):  # type: ignore[misc, name-defined]
        inner = library.HTTPTransport()

        def handle_request(self, request):
            request.headers["x-around"] = "1"
            return self.inner.handle_request(request)

        def close(self):
            self.inner.close()

    with library.Client(transport=Around()) as client:
        call(lambda: client.post(url, json=ASK))
    assert phases() == [*FIRST, "finalize"]


# ── What is sent on the way ──────────────────────────────────────────────────────────────────────


@each_library
def test_requests_of_an_auth_flow_are_none_of_the_calls(
    url, upstream, record, call, phases, library
):
    class Token(library.Auth):  # type: ignore[misc, name-defined]
        requires_response_body = True

        def auth_flow(self, request):
            token = yield library.Request("POST", url, json=ASK)
            request.headers["authorization"] = token.json()["id"]
            yield request

    with library.Client(trust_env=False, auth=Token()) as client:
        call(lambda: client.post(url, json=ASK))
    assert ["traceparent" in each for each in upstream.requests] == [False, True]
    assert phases() == ["prepare", "pool_wait", "send", "wait", "finalize"], "it has connected"
    assert names.HTTP_REQUEST_RESEND_COUNT not in record.spans[0].attributes


@each_library
def test_a_request_that_has_to_be_sent_again_with_a_name_is_one_attempt(
    url, upstream, record, call, phases, library
):
    class Challenge(library.Auth):  # type: ignore[misc, name-defined]
        def auth_flow(self, request):
            yield request
            request.headers["authorization"] = "name"
            yield request

    with library.Client(trust_env=False, auth=Challenge()) as client:
        call(lambda: client.post(url, json=ASK))
    assert len(set(parents(upstream))) == 1
    assert phases() == [*FIRST, "pool_wait", "send", "wait", "finalize"]


@each_library
def test_requests_of_an_event_hook_are_none_of_the_calls(
    url, upstream, record, call, phases, library
):
    def fetch(request):
        library.post(url, json=ASK, trust_env=False)

    with library.Client(trust_env=False, event_hooks={"request": [fetch]}) as client:
        call(lambda: client.post(url, json=ASK))
    assert ["traceparent" in each for each in upstream.requests] == [False, True]
    assert phases() == [*FIRST, "finalize"]


@each_library
def test_another_server_on_the_same_host_is_not_who_the_call_asks(
    url, record, call, phases, library
):
    with Upstream() as other:  # It never answers.
        elsewhere = f"{other.url}/token"

        def fetch():
            with pytest.raises(library.ReadTimeout):
                library.post(elsewhere, json=ASK, timeout=0.05, trust_env=False)
            return library.post(url, json=ASK, trust_env=False)

        call(fetch)
    assert phases() == [*FIRST, "finalize"]


# ── What is in the request already ───────────────────────────────────────────────────────────────


@each_library
@pytest.mark.parametrize("where", ["client", "request"])
def test_a_parent_that_is_named_already_stays(url, upstream, record, call, library, where):
    theirs = {"traceparent": THEIRS, "tracestate": "theirs=1"}
    of_client, of_request = (theirs, None) if where == "client" else (None, theirs)
    with library.Client(trust_env=False, headers=of_client) as client:
        call(lambda: client.post(url, json=ASK, headers=of_request))
    assert {name: upstream.requests[0][name] for name in theirs} == theirs


@each_library
def test_baggage_stays_here(url, upstream, record, call, library):
    token = contexts.attach(baggage.set_baggage("user", "alice"))
    try:
        with library.Client(trust_env=False) as client:
            call(lambda: client.post(url, json=ASK))
    finally:
        contexts.detach(token)
    assert "traceparent" in upstream.requests[0]
    assert "baggage" not in upstream.requests[0]


@each_library
def test_the_users_own_trace_sees_what_it_saw(url, record, call, library):
    def events(run):
        seen = []
        extensions = {"trace": lambda name, info: seen.append((name, sorted(info)))}
        with library.Client(trust_env=False) as client:
            asked = client.build_request("POST", url, json=ASK, extensions=extensions)
            run(lambda: client.send(asked))
        return seen

    assert events(call) == events(lambda function: function())


# ── Without a call, and without us ───────────────────────────────────────────────────────────────


@each_library
def test_a_request_without_a_call_is_none_of_our_business(url, upstream, record, library):
    with library.Client(trust_env=False) as client:
        asked = client.build_request("POST", url, json=ASK)
        before = (dict(asked.headers), dict(asked.extensions))
        answer = client.send(asked, stream=True)
        assert type(answer.stream).__module__.startswith(library.__name__)
        answer.close()
    assert (dict(asked.headers), dict(asked.extensions)) == before
    assert "traceparent" not in upstream.requests[0]
    assert record.spans == ()


@each_library
def test_uninstrument_gives_httpx_back_while_a_response_is_open(url, record, call, phases, library):
    def ask():
        with client.stream("POST", url, json={**ASK, "stream": True}) as answer:
            llmlat_otel.uninstrument()
            return list(answer.iter_lines())

    with library.Client(trust_env=False) as client:
        assert "data: [DONE]" in call(ask)
    assert phases() == [*FIRST, "finalize"]
    for owner, method in (
        (library.Client, "send"),
        (library.AsyncClient, "send"),
        (library.HTTPTransport, "handle_request"),
        (library.AsyncHTTPTransport, "handle_async_request"),
    ):
        assert inspect.isfunction(inspect.getattr_static(owner, method))
