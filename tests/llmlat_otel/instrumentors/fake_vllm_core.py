"""vLLM's EngineCore without a model: what we look at there, in the shape of each version."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace
from typing import NamedTuple


@dataclass(frozen=True)
class Shape:
    """How a version of vLLM differs from others, where we look."""

    tells_evictions: bool = True
    resumed_are_flags: bool = False
    resumed_are_new: bool = False
    has_prefill_stats: bool = True
    has_external_ids: bool = True
    aborts_take_internal: bool = True
    inputs_stream: bool = True
    weights_have_versions: bool = True


SHAPES = {
    "0.10.2": Shape(False, True, False, False, False, False, False, False),
    "0.14.1": Shape(has_prefill_stats=False, inputs_stream=False, weights_have_versions=False),
    "0.20.2": Shape(weights_have_versions=False),
    "0.32.0": Shape(),
    "0.32.0 with the second runner": Shape(resumed_are_new=True),
}


class FinishReason(IntEnum):
    stop = 0
    length = 1
    abort = 2
    error = 3

    def __str__(self):
        return self.name


EventType = IntEnum("EventType", ["QUEUED", "SCHEDULED", "PREEMPTED"])
RequestStatus = IntEnum(
    "RequestStatus", ["WAITING", "WAITING_FOR_REMOTE_KVS", "RUNNING", "PREEMPTED"]
)


class Step(NamedTuple):
    """What a scheduler is to do next: sizes by request, and whom it evicts before."""

    sizes: dict[str, int]
    evicted: tuple[str, ...] = ()


class Scheduler:
    """The scheduler of an EngineCore, which does what is planned for it."""

    shape: Shape

    def __init__(self, now_s, log_stats=True):
        self.requests = {}
        self.waiting = []
        self.running = []
        self.connector = None
        self.finished_req_ids = set()
        self.plan: deque[Step] = deque()
        self._now_s = now_s
        self._log_stats = log_stats
        self._known = set()

    def _event(self, request, kind):
        if self._log_stats:
            request.events.append(SimpleNamespace(type=kind, timestamp=self._now_s()))

    def add_request(self, request):
        self.waiting.append(request)
        self.requests[request.request_id] = request
        self._event(request, EventType.QUEUED)

    def schedule(self, throttle_prefills=False):
        step = self.plan.popleft()
        for request_id in step.evicted:
            request = self.requests[request_id]
            self.running.remove(request)
            self.waiting.insert(0, request)
            request.status, request.num_computed_tokens = RequestStatus.PREEMPTED, 0
            self._event(request, EventType.PREEMPTED)
        entered = [self.requests[each] for each in step.sizes]
        entered = [each for each in entered if each in self.waiting]
        resumed = [each for each in entered if each.request_id in self._known]
        new = [each for each in entered if each not in resumed]
        for request in entered:
            self.waiting.remove(request)
            self.running.append(request)
            if request in new:
                request.num_computed_tokens = request.num_cached_tokens
            self._known.add(request.request_id)
            request.status = RequestStatus.RUNNING
            self._event(request, EventType.SCHEDULED)
        made = self._output(step, new, resumed)
        for request_id, size in step.sizes.items():
            self.requests[request_id].num_computed_tokens += size
        self.finished_req_ids = set()
        return made

    def _output(self, step, new, resumed):
        if self.shape.resumed_are_new:
            new, resumed = [*new, *resumed], []
        req_ids = [each for each in step.sizes if self.requests[each] not in new]
        back = [each.request_id for each in resumed]
        cached = SimpleNamespace(req_ids=req_ids)
        if self.shape.resumed_are_flags:
            cached.resumed_from_preemption = [each in back for each in req_ids]
        else:
            cached.resumed_req_ids = set(back)
        made = SimpleNamespace(
            scheduled_new_reqs=[SimpleNamespace(req_id=each.request_id) for each in new],
            scheduled_cached_reqs=cached,
            num_scheduled_tokens=dict(step.sizes),
            finished_req_ids=self.finished_req_ids,
        )
        if self.shape.tells_evictions:
            made.preempted_req_ids = set(step.evicted)
        return made

    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = []
        for request_id, (tokens, reason) in model_runner_output.items():
            request = self.requests.get(request_id)
            if request is None:
                continue
            outputs.append(self._told(request, tokens, reason))
            if reason is not None:
                self.finish(request_id)
        return {0: SimpleNamespace(outputs=outputs, timestamp=self._now_s())}

    def _told(self, request, tokens, reason):
        pooled = request.pooling_params is not None
        made = SimpleNamespace(
            request_id=request.request_id,
            new_token_ids=[] if pooled else tokens,
            pooling_output=[0.5] if pooled and tokens else None,
            finish_reason=reason,
            events=request.events or None,
            trace_headers=request.trace_headers,
        )
        stats = SimpleNamespace(num_cached_tokens=request.num_cached_tokens)
        if self.shape.has_prefill_stats:
            made.prefill_stats = None if request.is_told else stats
        else:
            made.num_cached_tokens = request.num_cached_tokens
        request.events, request.is_told = [], True
        return made

    def finish(self, request_id):
        request = self.requests.pop(request_id, None)
        if request is not None:
            for queue in (self.waiting, self.running):
                if request in queue:
                    queue.remove(request)
            self.finished_req_ids.add(request_id)


class Request:
    """A request in the EngineCore."""

    def __init__(self, **fields):
        vars(self).update(fields)
