"""OTLP bytes to spans of the model and back, pure both ways; what is damaged is set aside."""

from llmlat_processor.wire.decoded import Damaged, Decoded, UndecodableError, WireSpan
from llmlat_processor.wire.encode import encode
from llmlat_processor.wire.otlp_json import decode_json
from llmlat_processor.wire.protobuf import decode

__all__ = [
    "Damaged",
    "Decoded",
    "UndecodableError",
    "WireSpan",
    "decode",
    "decode_json",
    "encode",
]
