"""The one import: `import llmlat_otel.auto`, and every supported library is timed.

It works before and after the libraries are imported. Spans go to the tracer provider that the
application has set, whenever it sets it. Where it sets none, the `OTEL_*` variables say where they
go: `OTEL_TRACES_EXPORTER` (otlp, console, none), `OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_EXPORTER_OTLP_PROTOCOL` (grpc, http/protobuf), `OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED` ...
"""

from importlib import import_module

from llmlat_otel import instrument
from llmlat_otel.core.guard import guarded


def _provide() -> None:
    # What it needs may be missing or broken: the application is to run all the same.
    import_module("llmlat_otel.providing").provide()


guarded("provider", _provide)
instrument()
