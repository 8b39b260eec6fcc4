"""A request in OTLP's JSON, in each of the ways in which that may be written."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

Json = Any
"""Whatever a JSON parser gives."""

IDS: Final = ("traceId", "spanId", "parentSpanId")
INTEGERS: Final = ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "intValue")
_NAMES: Final = {"kind": Span.SpanKind, "code": Status.StatusCode}


def tree_of(request: ExportTraceServiceRequest) -> Json:
    """The plainest way: protobuf's own JSON, but with ids in hexadecimal."""
    tree = MessageToDict(request, use_integers_for_enums=True)
    for node in objects(tree):
        for key in node.keys() & set(IDS):
            node[key] = base64.b64decode(node[key]).hex()
    return tree


def objects(tree: Json) -> list[dict[str, Json]]:
    """Every object in a tree, from outside in."""
    found, rest = [], [tree]
    while rest:
        node = rest.pop(0)
        if isinstance(node, dict):
            found.append(node)
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    return found


def varied(tree: Json, random: Random) -> str:
    """A tree that nobody else has, in another way; it is changed."""
    for node in objects(tree):
        for key in node.keys() & set(INTEGERS):
            if random.random() < 0.4:
                node[key] = int(node[key])
        for key in node.keys() & set(IDS):
            if random.random() < 0.2:
                node[key] = node[key].upper()
        for key in node.keys() & set(_NAMES):
            if random.random() < 0.2:
                node[key] = _NAMES[key].Name(node[key])
        if random.random() < 0.1:
            node["somethingNew"] = random.choice((None, 1, "x", [{}], {"a": [1]}))
        if random.random() < 0.1 and "spanId" in node:
            node["links" if "links" not in node else "unheardOf"] = None
        if random.random() < 0.2:
            _reorder(node, random)
    indent = random.choice((None, None, 1))
    return json.dumps(tree, indent=indent, ensure_ascii=random.random() < 0.5)


def _reorder(node: dict[str, Json], random: Random) -> None:
    items = [*node.items()]
    random.shuffle(items)
    node.clear()
    node.update(items)
