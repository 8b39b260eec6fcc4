"""What a real Jaeger has stored, what it shows of it, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from llmlat_semconv import attributes as names

Json = dict[str, Any]

PATIENCE_S = 60
_GET_TRACE = "/jaeger.api_v3.QueryService/GetTrace"
_RAW = b"\x20\x01"  # GetTraceRequest.raw_traces = true: as stored, without any enrichment
_TRACE_ID_TAG = b"\x0a\x20"  # GetTraceRequest.trace_id, 32 characters of hex
_LONG_AGO_US = 1_000_000_000 * 10**6

_direct = build_opener(ProxyHandler({}))  # whatever proxy the environment names


class Stored(NamedTuple):
    """A span with what it lies in; of schema URLs the memory of this Jaeger keeps none."""

    span: Span
    scope: InstrumentationScope
    resource: Resource

    @property
    def service(self) -> str:
        """Its service's name."""
        return next(
            pair.value.string_value
            for pair in self.resource.attributes
            if pair.key == names.SERVICE_NAME
        )


@dataclass(frozen=True, slots=True)
class Jaeger:
    """The query side of Jaeger 1.76.

    Attributes:
        http: host and port of the UI and its API.
        grpc: host and port of the API over gRPC.
    """

    http: str
    grpc: str

    def stored(self, trace_id: bytes) -> list[Stored]:
        """Every span of a trace as it is stored; nothing as long as there is none."""
        request = _TRACE_ID_TAG + trace_id.hex().encode() + _RAW
        with grpc.insecure_channel(self.grpc) as channel:
            get = channel.unary_stream(_GET_TRACE, response_deserializer=TracesData.FromString)
            try:
                return [each for part in get(request, timeout=PATIENCE_S) for each in unpack(part)]
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND:
                    return []
                raise

    def shown(self, trace_id: bytes) -> Json:
        """A trace as the UI gets it, with Jaeger's own remarks on it."""
        (trace,) = self.get(f"/api/traces/{trace_id.hex()}")["data"]
        return dict(trace)

    def find(self, service: str, tags: Mapping[str, str] = {}, **query: str) -> set[bytes]:
        """Ids of the traces that a search finds, in any time."""
        more = {"tags": json.dumps(tags)} if tags else {}
        asked = urlencode(
            {"service": service, "start": _LONG_AGO_US, "limit": 100, **more, **query}
        )
        return {bytes.fromhex(each["traceID"]) for each in self.get(f"/api/traces?{asked}")["data"]}

    def get(self, path: str) -> Json:
        """What the API answers."""
        with _direct.open(f"http://{self.http}{path}", timeout=PATIENCE_S) as response:
            answer: Json = json.load(response)
        return answer


def unpack(data: Any) -> Iterator[Stored]:
    """Each span of TracesData or of an export request."""
    for resource in data.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Stored(span, scope.scope, resource.resource)
