"""The scheduler's side: what it does with a request, and when, is noted on the request itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from llmlat_otel.core.engine_timeline import Mark
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime
from llmlat_otel.instrumentors.vllm import notes

TARGET: Final = "vllm scheduler"

CHUNKS_MAX: Final = 64
"""More are counted, and their sizes are not kept: no list grows with its prompt."""

_AWAITS_CACHE: Final = "WAITING_FOR_REMOTE_KVS"


class _Steps:
    """What was seen of one request in its steps."""

    __slots__ = ("batch_max", "chunk_count", "chunks", "is_told")

    def __init__(self) -> None:
        self.chunks: list[int] = []
        self.chunk_count = 0
        self.batch_max = 0
        self.is_told = False


_steps: WeakKeyDictionary[Any, dict[str, _Steps]] = WeakKeyDictionary()
"""By scheduler and request, where steps are looked at."""

_told: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""By scheduler and request, what its last output has told; whatever is new is another object."""

_news: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""Requests by scheduler and id, of which something is known that no output has told yet."""


# A request arrives


def added(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Scheduler.add_request`."""
    ahead = guarded(TARGET, _ahead, instance)
    result = wrapped(*args, **kwargs)
    guarded(TARGET, partial(_arrived, instance, ahead, *args, **kwargs))
    return result


def _ahead(scheduler: Any) -> tuple[int, int, int]:
    """When it arrives, and how many wait and run then."""
    return runtime().clock.now_ns(), len(scheduler.waiting), len(scheduler.running)


def _arrived(
    scheduler: Any, ahead: tuple[int, int, int] | None, request: Any, *_: Any, **__: Any
) -> None:
    headers = request.trace_headers
    if ahead is None or not headers or headers.get(notes.ARRIVAL) != notes.ASKED:
        return
    at_ns, waiting, running = ahead
    told = {notes.ARRIVAL: notes.arrival(runtime().clock.domain_id, waiting, running)}
    told[notes.MARKS] = notes.with_mark("", Mark.QUEUED, at_ns)
    # Never changed in place: another thread may be sending it with an output.
    request.trace_headers = {**headers, **told}
    _news.setdefault(scheduler, {})[request.request_id] = request


# A step


def scheduled(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Scheduler.schedule`."""
    at_ns = guarded(TARGET, _now_ns)
    output = wrapped(*args, **kwargs)
    if at_ns is not None:
        guarded(TARGET, _stepped, instance, output, at_ns)
    return output


def _now_ns() -> int:
    return runtime().clock.now_ns()


def _stepped(scheduler: Any, output: Any, at_ns: int) -> None:
    requests = scheduler.requests
    if output.finished_req_ids:
        _forget(scheduler, output.finished_req_ids)
    for request_id in getattr(output, "preempted_req_ids", None) or ():
        _note(scheduler, request_id, Mark.EVICTED, at_ns)
    for new in output.scheduled_new_reqs:
        _note(scheduler, new.req_id, Mark.SCHEDULED, at_ns)
    for request_id in _resumed(output.scheduled_cached_reqs):
        _note(scheduler, request_id, Mark.SCHEDULED, at_ns)
    if runtime().settings.engine_steps:
        _look_into(scheduler, output)
        if scheduler.connector is not None:
            _look_for_transfers(requests.values(), at_ns)


def _forget(scheduler: Any, request_ids: Iterable[str]) -> None:
    for known in (_told.get(scheduler, {}), _news.get(scheduler, {})):
        for request_id in request_ids:
            known.pop(request_id, None)


def _note(scheduler: Any, request_id: str, mark: Mark, at_ns: int) -> None:
    request = scheduler.requests.get(request_id)
    if _mark(request, mark, at_ns):
        _news.setdefault(scheduler, {})[request_id] = request


def _resumed(cached: Any) -> Iterator[str]:
    """Requests that are back in the batch, as versions of vLLM tell of them."""
    resumed = getattr(cached, "resumed_req_ids", None)
    if resumed is not None:
        yield from resumed
        return
    flags = getattr(cached, "resumed_from_preemption", ())
    yield from (each for each, is_back in zip(cached.req_ids, flags, strict=False) if is_back)


def _mark(request: Any, mark: Mark, at_ns: int) -> bool:
    """Whether it is a request that is told of."""
    headers = None if request is None else request.trace_headers
    if not headers or notes.MARKS not in headers:
        return False
    marks = notes.with_mark(headers[notes.MARKS], mark, at_ns)
    request.trace_headers = {**headers, notes.MARKS: marks}
    return True


# Each request of each step, where that is asked for


def _look_into(scheduler: Any, output: Any) -> None:
    known = _steps.setdefault(scheduler, {})
    for request_id in output.finished_req_ids:
        known.pop(request_id, None)
    sizes = output.num_scheduled_tokens
    for request_id, size in sizes.items():
        seen = known.get(request_id)
        if seen is None:
            seen = known[request_id] = _Steps()
        seen.batch_max = max(seen.batch_max, len(sizes))
        request = scheduler.requests[request_id]
        computed = request.num_computed_tokens - size  # It counts this step already.
        if computed < request.num_prompt_tokens:
            seen.chunk_count += 1
            if len(seen.chunks) < CHUNKS_MAX:
                seen.chunks.append(min(size, request.num_prompt_tokens - computed))


def _look_for_transfers(requests: Iterable[Any], at_ns: int) -> None:
    for request in requests:
        headers = request.trace_headers
        if headers and notes.MARKS in headers:
            is_asked = headers[notes.MARKS].rpartition(",")[2].startswith(Mark.KV_ASKED.value)
            if (request.status.name == _AWAITS_CACHE) is not is_asked:
                _mark(request, Mark.KV_PRESENT if is_asked else Mark.KV_ASKED, at_ns)


def updated(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Scheduler.update_from_output`, which makes what is sent back."""
    result = wrapped(*args, **kwargs)
    guarded(TARGET, _tell, instance, result)
    return result


def _tell(scheduler: Any, result: Any) -> None:
    _tell_once(scheduler, result)
    if _steps:
        guarded(TARGET, _tell_steps, scheduler, result)
    if _news:
        _tell_news(scheduler, result)


def _tell_once(scheduler: Any, result: Any) -> None:
    """Let an output carry nothing that the one before it has carried: most have nothing to tell.

    vLLM looks at what comes with the last one only, and that carries all of it.
    """
    told = _told.setdefault(scheduler, {})
    for output in _outputs(result):
        headers = output.trace_headers
        if not headers or notes.MARKS not in headers:
            continue
        if output.finish_reason is not None:
            told.pop(output.request_id, None)
        elif told.get(output.request_id) is headers:
            output.trace_headers = None
        else:
            told[output.request_id] = headers


def _tell_news(scheduler: Any, result: Any) -> None:
    """Who is given up before its first output has been told of by those of others."""
    news = _news.get(scheduler)
    if not news:
        return
    for output in _outputs(result):
        news.pop(output.request_id, None)
    waiting = {request_id: each.trace_headers for request_id, each in news.items()}
    firsts = [of_client.outputs[0] for of_client in result.values() if of_client.outputs]
    for first in firsts if waiting else ():
        first.trace_headers = {**(first.trace_headers or {}), notes.NEWS: notes.news(waiting)}
    if firsts:
        news.clear()


def _tell_steps(scheduler: Any, result: Any) -> None:
    known = _steps.get(scheduler) if runtime().settings.engine_steps else None
    if not known:
        return
    for output in _outputs(result):
        seen = known.get(output.request_id)
        if seen is None or not output.trace_headers:
            continue
        if not seen.is_told or output.finish_reason is not None:
            seen.is_told = True
            told = notes.steps(seen.chunks, seen.chunk_count, seen.batch_max)
            output.trace_headers = {**output.trace_headers, notes.STEPS: told}


def _outputs(result: Any) -> Iterator[Any]:
    for of_client in result.values():
        yield from of_client.outputs
