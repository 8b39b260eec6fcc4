"""JSON to spans, whichever of its forms they are in: OTLP's, or one that Jaeger answers in.

{"resourceSpans": ...}             OTLP
{"result": {"resourceSpans": ...}} Jaeger's API v3: OTLP too
{"data": [{"spans": ...}]}         Jaeger's own
"""

from __future__ import annotations

from llmlat_processor.wire.decoded import Decoded, UndecodableError
from llmlat_processor.wire.jaeger_fields import saying
from llmlat_processor.wire.jaeger_json import decode_jaeger, is_jaeger
from llmlat_processor.wire.json_fields import Json
from llmlat_processor.wire.otlp_json import decode_tree, parse


def decode_document(document: bytes) -> Decoded:
    """The spans of a JSON document; its form is told by its content.

    Raises:
        UndecodableError: it is not JSON, or holds something other than spans.
    """
    parsed = parse(document)
    if is_jaeger(parsed):
        return decode_jaeger(parsed)
    if isinstance(parsed, dict) and "result" in parsed:
        return decode_tree(parsed["result"], "result")
    if _is_refusal(parsed):
        said = saying(parsed["error"]["message"])
        raise UndecodableError(f"an answer of Jaeger's without a trace: {said}")
    return decode_tree(parsed)


def _is_refusal(parsed: Json) -> bool:
    """Whether it is how Jaeger's API v3 says that there is no such trace."""
    error = parsed.get("error") if isinstance(parsed, dict) else None
    return isinstance(error, dict) and isinstance(error.get("message"), str)
