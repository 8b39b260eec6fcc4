"""Where the time of an LLM request went: phases of each call, on OpenTelemetry.

`import llmlat_otel.auto` is all that most programs need. The rest is for what no library can know:
which part of a program is an agent, a tool or a retrieval.

    @tool()
    def weather(city: str) -> str: ...

    with agent("adviser"):
        ...

None of it raises into the program; `health()` says how it goes, and so does `llmlat doctor`.
"""

from llmlat_otel.loading import (
    agent,
    carry,
    first_content,
    flush,
    flush_async,
    instrument,
    phase,
    retrieval,
    shutdown,
    shutdown_async,
    tool,
    uninstrument,
)
from llmlat_otel.vitals import health

__all__ = [
    "agent",
    "carry",
    "first_content",
    "flush",
    "flush_async",
    "health",
    "instrument",
    "phase",
    "retrieval",
    "shutdown",
    "shutdown_async",
    "tool",
    "uninstrument",
]
