"""vLLM's API process without a model: what we look at, in the shape of each version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType, SimpleNamespace

from tests.llmlat_otel.instrumentors.fake_vllm_core import FinishReason, Scheduler, Shape

ASYNC_LLM = "vllm.v1.engine.async_llm"
LLM_ENGINE = "vllm.v1.engine.llm_engine"
OUTPUT_PROCESSOR = "vllm.v1.engine.output_processor"
SCHEDULER = "vllm.v1.core.sched.scheduler"
FASTAPI = "fastapi.applications"


class Params(SimpleNamespace):
    """Parameters of sampling, or of pooling."""


def request_of(shape, request_id, prompt=(1, 2, 3, 4), *, headers=None, pooling=False, **more):
    """What the API process hands to the EngineCore."""
    params = {"sampling_params": Params(), "pooling_params": None}
    if pooling:
        params = {"sampling_params": None, "pooling_params": Params()}
    made = SimpleNamespace(
        request_id=request_id,
        prompt_token_ids=None if prompt is None else list(prompt),
        trace_headers=headers,
        **params,
    )
    if shape.has_external_ids:
        made.external_req_id = more.pop("external_req_id", None)
    vars(made).update(more)
    return made


class OutputProcessor:
    """The API process's side of the requests that are under way."""

    shape: Shape

    def __init__(self, trace=None):
        self.request_states = {}
        self.parent_requests = {}
        self.trace = trace

    def add_request(self, request, prompt, parent_req=None, request_index=0, queue=None):
        request_id = request.request_id
        if request_id in self.request_states:
            if not self.shape.inputs_stream:
                raise ValueError(f"Request id {request_id} already running.")
            return
        self.request_states[request_id] = SimpleNamespace(
            request_id=request_id,
            queue=queue,
            stop=getattr(request, "stop", None),
            is_streaming=getattr(request, "resumable", False),
        )
        if parent_req is not None:
            self.parent_requests[parent_req.request_id] = parent_req

    def _process(self, outputs, weight_version=None):
        results, to_abort = [], []
        for output in outputs:
            state = self.request_states.get(output.request_id)
            if state is None:
                continue
            reason = output.finish_reason
            if state.stop is not None and state.stop in output.new_token_ids:
                reason = FinishReason.stop
            results.append((output.request_id, list(output.new_token_ids), reason))
            if reason is None or state.is_streaming:
                continue
            self.request_states.pop(output.request_id)
            if output.finish_reason is None:
                to_abort.append(output.request_id)
            if self.trace is not None:
                self.do_tracing(output, state, None)
        return SimpleNamespace(request_outputs=results, reqs_to_abort=to_abort)

    def process_outputs(
        self,
        engine_core_outputs,
        engine_core_timestamp=None,
        iteration_stats=None,
        weight_version=None,
    ):
        return self._process(engine_core_outputs, weight_version)

    def _abort(self, request_ids):
        found = []
        for request_id in request_ids:
            if self.request_states.pop(request_id, None) is not None:
                found.append(request_id)
            elif parent := self.parent_requests.pop(request_id, None):
                found.extend(self._abort(list(parent.child_requests)))
        return found

    def abort_requests(self, request_ids, internal=None):
        return self._abort(request_ids)

    def propagate_error(self, e):
        for state in self.request_states.values():
            if state.queue is not None:
                state.queue.append(e)

    def do_tracing(self, engine_core_output, req_state, iteration_stats):
        self.trace(engine_core_output)


class _Engine:
    outputs_kind: type

    def __init__(self, served="tiny", trace=None):
        self.output_processor = self.outputs_kind(trace)
        self.model_config = SimpleNamespace(served_model_name=served)
        self.tokenize = lambda: None
        self.core = lambda request: None

    def _add(self, request, queue):
        self.tokenize()
        self.output_processor.add_request(request, None, None, 0, queue)
        self.core(request)


class AsyncLLM(_Engine):
    async def add_request(self, request, *, queue=None):
        self._add(request, queue)


class LLMEngine(_Engine):
    def add_request(self, request, *, queue=None):
        self._add(request, queue)


class FastAPI:
    answer: Callable[..., Awaitable[None]]

    async def __call__(self, scope, receive, send):
        await self.answer(scope)


def library(shape):
    """The modules of a version, as `sys.modules` would have them."""
    of_shape = {"shape": shape}
    outputs = type("OutputProcessor", (OutputProcessor,), of_shape)
    known = {"outputs_kind": outputs}
    return {
        FASTAPI: _module(FASTAPI, type("FastAPI", (FastAPI,), {})),
        ASYNC_LLM: _module(ASYNC_LLM, type("AsyncLLM", (AsyncLLM,), known)),
        LLM_ENGINE: _module(LLM_ENGINE, type("LLMEngine", (LLMEngine,), known)),
        OUTPUT_PROCESSOR: _module(OUTPUT_PROCESSOR, outputs),
        SCHEDULER: _module(SCHEDULER, type("Scheduler", (Scheduler,), of_shape)),
    }


def _module(name, owner):
    module = ModuleType(name)
    setattr(module, owner.__name__, owner)
    return module
