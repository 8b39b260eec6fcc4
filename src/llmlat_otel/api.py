"""What the package offers, where all of it can be imported."""

from llmlat_otel.core.manual import agent, first_content, phase, retrieval, tool
from llmlat_otel.core.propagation import carry
from llmlat_otel.errors import ContractError
from llmlat_otel.exporting import flush, flush_async, shutdown, shutdown_async
from llmlat_otel.instrumentation import instrument, uninstrument
from llmlat_semconv.version import CONTRACT_VERSION

__all__ = [
    "agent",
    "carry",
    "first_content",
    "flush",
    "flush_async",
    "instrument",
    "phase",
    "retrieval",
    "shutdown",
    "shutdown_async",
    "tool",
    "uninstrument",
]

_MAJOR = "0"

if CONTRACT_VERSION.partition(".")[0] != _MAJOR:
    raise ContractError(CONTRACT_VERSION, f"{_MAJOR}.x")
