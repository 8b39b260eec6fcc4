"""An engine of a fake vLLM, driven step by step on a clock that is set by hand.

Engine.add ── OutputProcessor.add_request ── Scheduler.add_request
Engine.step ── Scheduler.schedule, time passes, Scheduler.update_from_output
               ── OutputProcessor.process_outputs
"""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from types import SimpleNamespace

from tests.llmlat_otel.instrumentors.fake_vllm import LLM_ENGINE, SCHEDULER, request_of
from tests.llmlat_otel.instrumentors.fake_vllm_core import Request, RequestStatus, Step


class Engine:
    """An engine and its EngineCore, which reads a clock of its own or the same.

    Args:
        modules: Of a version.
        shape: Of that version.
        clock: Moved by what takes time.
        in_core: Entered around all that the EngineCore does: another process has its own SDK.
        core_now_ns: What the EngineCore's clock says.
        log_stats: Whether vLLM makes events.
        trace: Makes vLLM's own span, where that is switched on.
    """

    def __init__(
        self,
        modules,
        shape,
        clock,
        *,
        in_core=nullcontext,
        core_now_ns=None,
        log_stats=True,
        trace=None,
    ):
        self.shape = shape
        self.clock = clock
        self.in_core = in_core
        core_now_ns = core_now_ns or clock.now_ns
        self.api = modules[LLM_ENGINE].LLMEngine(trace=trace)
        self.api.core = self._to_core
        self.outputs = self.api.output_processor
        self.scheduler = modules[SCHEDULER].Scheduler(lambda: core_now_ns() / 1e9, log_stats)
        self.cached = 0
        self.told = []

    def add(self, request_id, prompt=(1, 2, 3, 4), **more):
        """A request is accepted here and now, and handed to the EngineCore."""
        request = request_of(self.shape, request_id, prompt, **more)
        self.api.add_request(request)
        return request

    def _to_core(self, request):
        sent = SimpleNamespace(**vars(pickle.loads(pickle.dumps(request))))
        prompt = sent.prompt_token_ids
        core = Request(
            request_id=sent.request_id,
            trace_headers=sent.trace_headers,
            pooling_params=sent.pooling_params,
            num_prompt_tokens=4 if prompt is None else len(prompt),
            num_computed_tokens=0,
            num_cached_tokens=self.cached,
            status=RequestStatus.WAITING,
            events=[],
            is_told=False,
        )
        with self.in_core():
            self.scheduler.add_request(core)

    def step(self, sizes, tokens=None, *, evicted=(), takes_ns=10_000_000, **ends):
        """One step of the EngineCore.

        Args:
            sizes: Tokens that are scheduled, by request.
            tokens: Tokens that come out, by request; one for each that is scheduled by default.
            evicted: Requests that lose their place before.
            takes_ns: How long it takes.
            ends: Reasons, by request.
        """
        self.scheduler.plan.append(Step(sizes, tuple(evicted)))
        with self.in_core():
            scheduled = self.scheduler.schedule()
        self.clock.advance(takes_ns)
        made = dict.fromkeys(sizes, 1) if tokens is None else tokens
        results = {each: ([7] * count, ends.get(each)) for each, count in made.items()}
        with self.in_core():
            (told,) = self.scheduler.update_from_output(scheduled, results).values()
        self.process(told)

    def process(self, told):
        """What has come back is handed over."""
        versions = {"weight_version": "1"} if self.shape.weights_have_versions else {}
        outputs = pickle.loads(pickle.dumps(told.outputs))
        done = self.outputs.process_outputs(outputs, told.timestamp, None, **versions)
        self.told += done.request_outputs
        self._abort_in_core(done.reqs_to_abort)

    def abort(self, *request_ids):
        """The caller of some requests has gone."""
        internal = (True,) if self.shape.aborts_take_internal else ()
        found = self.outputs.abort_requests(request_ids, *internal)
        self._abort_in_core(found)
        return found

    def _abort_in_core(self, request_ids):
        for each in request_ids:
            self.scheduler.finish(each)
