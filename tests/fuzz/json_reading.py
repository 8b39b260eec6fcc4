"""OTLP's JSON read by protobuf's own reader of JSON; only the ids need a hand."""

from __future__ import annotations

import base64
import json
import re
from typing import Final

from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fuzz.json_writing import IDS, objects

_HEXADECIMAL: Final = re.compile("([0-9a-fA-F]{2})*")


def read_by_protobuf(document: bytes) -> ExportTraceServiceRequest | None:
    """What it reads; None where it refuses any of it."""
    try:
        tree = json.loads(document)
        for node in objects(tree):
            for key in node.keys() & set(IDS):
                if node[key] is None:
                    continue
                if not _HEXADECIMAL.fullmatch(node[key]):
                    return None
                node[key] = base64.b64encode(bytes.fromhex(node[key])).decode()
        return ParseDict(tree, ExportTraceServiceRequest(), ignore_unknown_fields=True)
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError):
        return None
