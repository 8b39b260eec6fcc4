"""vLLM: the API server or `LLM()` in one process, the scheduler in the same one or in another."""

from llmlat_otel.instrumentors.vllm.targets import TARGETS

__all__ = ["TARGETS"]
