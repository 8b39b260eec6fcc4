"""The methods of vLLM that are timed, on both sides of its two processes."""

from __future__ import annotations

from typing import Final

from llmlat_otel.core.instrumentor import Target
from llmlat_otel.instrumentors.vllm import arrivals, frontend, scheduler

_OUTPUTS: Final = "vllm.v1.engine.output_processor"
_SCHEDULER: Final = "vllm.v1.core.sched.scheduler"

#   API server, or the application              EngineCore, in this process or another
#
#   HTTP ── FastAPI ──── AsyncLLM               Scheduler.add_request, .schedule
#   LLM() ────────────── LLMEngine                 stamps on what the request carries
#              OutputProcessor.add_request ──────>    │
#              OutputProcessor.process_outputs <──────┘ update_from_output
#                the account becomes a span

TARGETS: Final = (
    Target("fastapi.applications", "FastAPI.__call__", arrivals.answered),
    Target("vllm.v1.engine.async_llm", "AsyncLLM.add_request", arrivals.asked),
    Target("vllm.v1.engine.llm_engine", "LLMEngine.add_request", arrivals.asked_here),
    Target(_OUTPUTS, "OutputProcessor.add_request", frontend.added),
    Target(_OUTPUTS, "OutputProcessor.process_outputs", frontend.processed),
    Target(_OUTPUTS, "OutputProcessor.abort_requests", frontend.aborted),
    Target(_OUTPUTS, "OutputProcessor.propagate_error", frontend.failed),
    Target(_OUTPUTS, "OutputProcessor.do_tracing", frontend.traced),
    Target(_SCHEDULER, "Scheduler.add_request", scheduler.added),
    Target(_SCHEDULER, "Scheduler.schedule", scheduler.scheduled),
    Target(_SCHEDULER, "Scheduler.update_from_output", scheduler.updated),
)
