"""Where the time of an LLM request went: phases of each call, on OpenTelemetry.

`import llmlat_otel.auto` is all that most programs need. The rest is for what no library can know:
which part of a program is an agent, a tool or a retrieval.

    @tool()
    def weather(city: str) -> str: ...

    with agent("adviser"):
        ...
"""

from llmlat_otel.core.manual import agent, first_content, phase, retrieval, tool
from llmlat_otel.instrumentation import instrument, uninstrument

__all__ = [
    "agent",
    "first_content",
    "instrument",
    "phase",
    "retrieval",
    "tool",
    "uninstrument",
]
