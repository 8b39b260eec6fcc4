"""The door that vLLM comes in by: the entry point `vllm.general_plugins`, in each of its processes.

Installing llmlat-otel beside vLLM is the whole set-up. `VLLM_PLUGINS` without `llmlat` in it leaves
it out, as does `LLMLAT_DISABLED=vllm`. Spans go where vLLM's own tracing sends its spans, else
where the `OTEL_*` variables say (see `llmlat_otel.auto`).
"""

from importlib import import_module

from llmlat_otel.core.guard import guarded

_TARGET = "vllm plugin"


def register() -> None:
    """Time vLLM from now on; nothing else that is imported in its processes."""
    guarded(_TARGET, _register)


def _register() -> None:
    # What it needs may be missing or broken: the server is to start all the same.
    import_module("llmlat_otel.providing").provide()
    import_module("llmlat_otel.instrumentation").instrument("vllm")
