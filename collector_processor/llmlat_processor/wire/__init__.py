"""OTLP bytes to spans of the model and back, pure both ways; what is damaged is set aside."""

from llmlat_processor.wire.decoded import Damaged, Decoded, UndecodableError, WireSpan
from llmlat_processor.wire.encode import Request, encode, encode_once, encode_within, sendable
from llmlat_processor.wire.halving import halves
from llmlat_processor.wire.json_document import decode_document
from llmlat_processor.wire.made import as_sent
from llmlat_processor.wire.otlp_json import decode_json
from llmlat_processor.wire.protobuf import decode

__all__ = [
    "Damaged",
    "Decoded",
    "Request",
    "UndecodableError",
    "WireSpan",
    "as_sent",
    "decode",
    "decode_document",
    "decode_json",
    "encode",
    "encode_once",
    "encode_within",
    "halves",
    "sendable",
]
