"""The door that `opentelemetry-instrument` comes in by; spans go to the provider that it sets."""

from __future__ import annotations

from collections.abc import Collection

from llmlat_otel import instrument, uninstrument


class LlmlatInstrumentor:
    """What is asked of a `BaseInstrumentor` of opentelemetry-instrumentation, which we do without.

    The entry point `llmlat` loads it. `OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=llmlat` switches it
    off, and `LLMLAT_DISABLED` parts of it.
    """

    def instrument(self, **_: object) -> None:
        """Time the supported libraries from now on."""
        instrument()

    def uninstrument(self, **_: object) -> None:
        """Put them back as they were."""
        uninstrument()

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: a library that is not there is waited for."""
        return ()
