"""The API process's side: a request from `add_request` to its end, and the span that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from llmlat_otel.core import engine_spans, native_spans, propagation
from llmlat_otel.core.attributes import error_type
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime
from llmlat_otel.instrumentors.vllm import notes
from llmlat_otel.instrumentors.vllm.arrivals import Arrival, arrival, model_of
from llmlat_otel.instrumentors.vllm.requests import Request, core_ns
from llmlat_semconv.values import StreamEnd

TARGET: Final = "vllm request"

NATIVE_SPAN: Final = "llm_request"
"""vLLM's own span of a request, where its tracing is on: it is made as the request is over."""

_ABORTED: Final = "abort"
_ERROR: Final = "error"

_requests: WeakKeyDictionary[Any, dict[str, Request]] = WeakKeyDictionary()
"""Requests under way, by output processor and id."""


def added(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `OutputProcessor.add_request`; the request goes to the EngineCore after it."""
    request = guarded(TARGET, partial(_begin, instance, *args, **kwargs))
    try:
        return wrapped(*args, **kwargs)
    except BaseException:
        if request is not None:
            guarded(TARGET, _forget, instance, request)
        raise


def _begin(outputs: Any, request: Any, *_: Any, **__: Any) -> str | None:
    known = _requests.setdefault(outputs, {})
    request_id: str = request.request_id
    come, carried = arrival.get(), dict(request.trace_headers or ())
    is_named = propagation.TRACEPARENT in carried
    caller = engine_spans.caller(_named_by(come, carried if is_named else None))
    if request_id in known or not caller.is_heard:
        return None  # More of an input that streams; or nobody hears of it.
    begun = Request(runtime(), request, caller, come, model_of(outputs))
    named = {} if is_named else caller.headers
    request.trace_headers = {**named, **carried, notes.ARRIVAL: notes.ASKED}
    known[request_id] = begun
    return request_id


def _named_by(come: Arrival | None, carried: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """The headers that name the parent: HTTP's, else those that a process before this one gave."""
    return carried if come is None or come.headers is None else come.headers


def _forget(outputs: Any, request_id: str) -> None:
    _requests[outputs].pop(request_id, None)


def processed(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `OutputProcessor.process_outputs`: text is handed over as it returns."""
    known = guarded(TARGET, _requests.get, instance)
    if not known:
        return wrapped(*args, **kwargs)
    guarded(TARGET, partial(_received, known, *args, **kwargs))
    result = wrapped(*args, **kwargs)
    guarded(TARGET, partial(_end_those_over, instance, known, *args, **kwargs))
    return result


# What is done for each output of each step comes first in what this costs: nothing is called or
# made for one that only goes on.


def _received(
    known: dict[str, Request],
    engine_core_outputs: Iterable[Any],
    engine_core_timestamp: float | None = None,
    *_: Any,
    **__: Any,
) -> None:
    """Tell requests of their outputs."""
    clock = runtime().clock
    at_ns = core_ns(engine_core_timestamp) if engine_core_timestamp else clock.now_ns()
    for output in engine_core_outputs:
        headers = output.trace_headers
        if headers and notes.NEWS in headers:
            _tell(known, notes.read_news(headers))
        request = known.get(output.request_id)
        if request is not None:
            request.received(output, at_ns)


def _tell(known: dict[str, Request], news: Mapping[str, Mapping[str, str]]) -> None:
    for request_id, told in news.items():
        if request_id in known:
            known[request_id].told(told)


def _end_those_over(
    outputs: Any, known: dict[str, Request], engine_core_outputs: Iterable[Any], *_: Any, **__: Any
) -> None:
    """Write the requests that vLLM has forgotten with these outputs."""
    underway = outputs.request_states
    for output in engine_core_outputs:
        request_id = output.request_id
        if request_id not in underway and request_id in known:
            guarded(TARGET, _end, known, request_id, *_ends(_reason(output)))


def _reason(output: Any) -> str | None:
    reason = output.finish_reason
    return None if reason is None else str(reason)


def _ends(reason: str | None) -> tuple[StreamEnd, str | None]:
    """How a request has ended, and what it failed with, by the reason that its core gives."""
    if reason == _ERROR:
        return StreamEnd.FAILED, _ERROR
    return StreamEnd.CANCELLED if reason == _ABORTED else StreamEnd.COMPLETE, None


def _end(
    known: dict[str, Request], request_id: str, end: StreamEnd, failure: str | None = None
) -> None:
    request = known.pop(request_id, None)
    if request is not None and not request.is_written:
        request.is_written = True
        account = request.account(end, failure)
        engine_spans.write_engine(runtime().emitter, account, request.caller, request.anchor)


def aborted(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `OutputProcessor.abort_requests`, which says what it has found to give up."""
    result = wrapped(*args, **kwargs)
    guarded(TARGET, _give_up, instance, result)
    return result


def _give_up(outputs: Any, request_ids: Iterable[str]) -> None:
    known = _requests.get(outputs)
    for request_id in request_ids if known else ():
        if request_id not in outputs.request_states:
            guarded(TARGET, _end, known, request_id, StreamEnd.CANCELLED)


def failed(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `OutputProcessor.propagate_error`: the engine is gone, and all its requests with it."""
    result = wrapped(*args, **kwargs)
    guarded(TARGET, partial(_fail, instance, *args, **kwargs))
    return result


def _fail(outputs: Any, e: Any, *_: Any, **__: Any) -> None:
    known = _requests.get(outputs) or {}
    for request_id in list(known):
        guarded(TARGET, _end, known, request_id, StreamEnd.FAILED, error_type(e))


# vLLM's own span


def traced(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `OutputProcessor.do_tracing`, which makes the span of a request that is over."""
    work = guarded(TARGET, partial(_into_theirs, instance, *args, **kwargs))
    if work is None:
        return wrapped(*args, **kwargs)
    before = guarded(TARGET, _await_theirs, work)
    try:
        return wrapped(*args, **kwargs)
    finally:
        if before is not None:
            guarded(TARGET, native_spans.restore, before)


def _await_theirs(work: native_spans.Work) -> tuple[native_spans.Awaited]:
    provider = runtime().emitter.their_provider()
    return native_spans.await_next(provider, NATIVE_SPAN, work)


def _into_theirs(outputs: Any, engine_core_output: Any, *_: Any, **__: Any) -> Any:
    request = (_requests.get(outputs) or {}).get(engine_core_output.request_id)
    if request is None:
        return None
    return partial(_write_into, request, _ends(_reason(engine_core_output)))


def _write_into(request: Request, ends: tuple[StreamEnd, str | None], span: Any) -> None:
    account = request.account(*ends)
    request.is_written = True
    engine_spans.write_into(runtime().emitter, account, span, request.anchor)
