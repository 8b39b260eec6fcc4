"""What may stand in a config file: its keys and their defaults, as models of pydantic.

What goes together with what is for `combinations`. A default stands here as an operator would
write it, made of those in `settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Final, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from llmlat_processor.config.endpoints import Endpoint, listener
from llmlat_processor.config.leaves import (
    Count,
    Duration,
    File,
    Headers,
    Listening,
    Pause,
    Secret,
    Sending,
    Size,
    Switch,
    offered,
    one_of,
)
from llmlat_processor.config.problems import Keys
from llmlat_processor.config.units import SECOND_NS, duration_text, size_text
from llmlat_processor.settings import (
    INLINE,
    Compression,
    Delivery,
    Durability,
    Explained,
    JournalSettings,
    Metering,
    Mode,
    Protocol,
)

GRPC_ADDRESS: Final = "127.0.0.1:4317"
HTTP_ADDRESS: Final = "127.0.0.1:4318"
TELEMETRY_ADDRESS: Final = "127.0.0.1:8889"

_WINDOW: Final = INLINE.window
_DELIVERY: Final = Delivery()
_JOURNAL: Final = JournalSettings()
_METERING: Final = Metering()


def _duration(value_ns: int, about: str) -> int:
    extra: JsonDict = {"default": duration_text(value_ns)}
    return Field(default=value_ns, description=about, json_schema_extra=extra)


def _seconds(value_s: float, about: str) -> int:
    return _duration(round(value_s * SECOND_NS), about)


def _size(value_bytes: int, about: str) -> int:
    extra: JsonDict = {"default": size_text(value_bytes)}
    return Field(default=value_bytes, description=about, json_schema_extra=extra)


def _listening(address: str) -> Endpoint:
    extra: JsonDict = {"default": address}
    about = "host:port; port 0 is any free one"
    return Field(default=listener(address), description=about, json_schema_extra=extra)


class Block(BaseModel):
    """A mapping of the file; what is given as nothing there is as good as not given."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        field_title_generator=lambda name, _: name,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {
            key: value
            for key, value in given.items()
            if value is not None or key not in cls.model_fields or _may_be_nothing(cls, key)
        }

    def has(self, key: str) -> bool:
        """Whether the file, or a variable in its stead, says something there."""
        return key in self.model_fields_set


class ServerTlsBlock(Block):
    """Who a listener is; files in PEM."""

    cert_file: File | None = Field(
        default=None, description="its certificate, with the chain behind it"
    )
    key_file: File | None = Field(default=None, description="the private key of that")
    client_ca_file: File | None = Field(
        default=None,
        description="who must have signed the certificates of clients; none are asked for",
    )


class ListenerBlock(Block):
    """Where something is received or told."""

    endpoint: Listening
    tls: ServerTlsBlock | None = Field(default=None, description="TLS, or in the clear without it")
    token: Secret = Field(default="", description="what clients show as `authorization: Bearer`")


class GrpcBlock(ListenerBlock):
    """OTLP over gRPC."""

    endpoint: Listening = _listening(GRPC_ADDRESS)


class HttpBlock(ListenerBlock):
    """OTLP over HTTP, as protobuf and as JSON."""

    endpoint: Listening = _listening(HTTP_ADDRESS)


class TelemetryBlock(ListenerBlock):
    """Where the processor tells of itself: /metrics, /healthz, /readyz, /status."""

    endpoint: Listening = _listening(TELEMETRY_ADDRESS)


class ReceiversBlock(Block):
    """What is received, and where; gRPC alone where neither is named."""

    grpc: GrpcBlock | None = Field(default=None, description="OTLP over gRPC; not without it")
    http: HttpBlock | None = Field(default=None, description="OTLP over HTTP; not without it")
    max_message_size: Size = _size(
        INLINE.max_message_bytes, "largest request that is accepted, after decompression"
    )


class ClientTlsBlock(Block):
    """Whom a sender believes, and who it is; files in PEM."""

    ca_file: File | None = Field(
        default=None,
        description="who must have signed the certificate of the destination; else the system",
    )
    cert_file: File | None = Field(
        default=None, description="our own certificate, where it is asked for"
    )
    key_file: File | None = Field(default=None, description="the private key of that")


class QueueBlock(Block):
    """What waits to be sent."""

    size: Size = _size(_DELIVERY.queue_bytes, "most of it; from there on nothing more is accepted")


class RetryBlock(Block):
    """How often something is sent again."""

    initial_interval: Duration = _seconds(
        _DELIVERY.first_retry_s, "first pause; it grows with each time"
    )
    max_interval: Duration = _seconds(
        _DELIVERY.longest_retry_s, "longest pause, unless the destination asks for a longer one"
    )
    max_elapsed_time: Duration = _seconds(
        _DELIVERY.give_up_s, "after which spans are dropped, and counted"
    )


class DestinationBlock(Block):
    """Where something is sent to."""

    endpoint: Sending | None = Field(
        default=None,
        description="host:port, http:// or https:// URL; over HTTP the path is added to it",
    )
    protocol: Annotated[Protocol, one_of(Protocol), offered(Protocol)] = Field(
        default=Protocol.GRPC, description="how OTLP is carried"
    )
    tls: ClientTlsBlock | None = Field(
        default=None,
        description="for https://; with host:port it asks for TLS, `{}` with all defaults",
    )
    headers: Headers = Field(default_factory=dict, description="sent with each request")
    token: Secret = Field(default="", description="sent as `authorization: Bearer`")
    compression: Annotated[Compression, one_of(Compression), offered(Compression)] = Field(
        default=Compression.AUTO, description="auto is none on loopback, a light gzip elsewhere"
    )
    timeout: Duration = _seconds(_DELIVERY.deadline_s, "how long an answer may take")
    max_request_size: Size = _size(
        _DELIVERY.request_bytes,
        "largest request that is sent; servers refuse more than 4MiB by default",
    )
    sending_queue: QueueBlock = Field(
        default_factory=QueueBlock, description="what waits to be sent"
    )
    retry: RetryBlock = Field(
        default_factory=RetryBlock, description="what is sent again, and when"
    )
    drain: Pause = _seconds(
        _DELIVERY.drain_s, "how long the end waits for what is still to be sent"
    )


class MetricsDestinationBlock(DestinationBlock):
    """Where metrics are sent to."""

    interval: Duration = _seconds(_METERING.interval_s, "how often they are sent")


class DestinationsBlock(Block):
    """What goes where."""

    spans: DestinationBlock | None = Field(
        default=None, description="the spans themselves; inline needs it, tap must not have it"
    )
    derived: DestinationBlock | None = Field(
        default=None, description="lanes; with the spans without it, and tap needs it"
    )
    metrics: MetricsDestinationBlock | None = Field(
        default=None, description="metrics, which can be fetched at `telemetry` as well"
    )


class WindowBlock(Block):
    """When a trace is let go, and how much is held."""

    idle: Pause = _duration(_WINDOW.idle_ns, "quiet time after which a whole trace goes")
    grace: Pause = _duration(_WINDOW.grace_ns, "the same while a call misses its callee")
    hold_max: Duration = _duration(_WINDOW.hold_max_ns, "longest that any span is held")
    tombstones: Pause = _duration(
        _WINDOW.tombstone_ns,
        "how long a trace that is gone is remembered, for spans that come late",
    )
    skeletons: Pause = _duration(
        _WINDOW.skeleton_ns,
        "how long the root of a trace is waited for whose spans had to go before it",
    )
    max_spans_per_trace: Count = Field(
        default=_WINDOW.trace_spans, description="above it fan-outs of equal leaves collapse"
    )
    max_trace_size: Size = _size(
        _WINDOW.trace_bytes, "most of one trace; what is over goes on by itself"
    )
    max_traces: Count = Field(
        default=_WINDOW.traces, description="above it the oldest traces go early"
    )
    max_held: Size = _size(_WINDOW.held_bytes, "above it the oldest traces go early")
    max_remembered: Size = _size(
        _WINDOW.revision_bytes, "most of traces that are gone, to explain them anew"
    )
    max_waiting: Size = _size(
        INLINE.waiting_bytes,
        "most that waits to be looked at; above it senders are asked to come again",
    )


class ViewsBlock(Block):
    """What is added to a trace beside the attributes of its operations."""

    lane: Switch = Field(
        default=True, description="its critical path, as spans of a service of its own"
    )
    annotations: Switch = Field(
        default=True, description="attributes and events on the spans themselves"
    )
    jaeger_warnings: Switch = Field(
        default=False, description="findings as warnings, as Jaeger shows them"
    )
    explain: Annotated[Explained, one_of(Explained), offered(Explained)] = Field(
        default=Explained.GENAI,
        description="genai: traces in which something speaks of GenAI or phases; or all",
    )


class JournalBlock(Block):
    """What is kept on disk of spans that were accepted and not sent yet."""

    enabled: Switch | None = Field(
        default=None, description="on where nothing is said, but in a tap, which must not have it"
    )
    max_size: Size = _size(_JOURNAL.max_bytes, "from there on nothing more is accepted")
    durability: Annotated[Durability, one_of(Durability), offered(Durability)] = Field(
        default=Durability.NORMAL,
        description="normal survives the end of the process, full that of the machine",
    )


class StateBlock(Block):
    """Where the processor keeps its journal, and what it knows of clocks."""

    directory: File | None = Field(
        default=None,
        description="$XDG_STATE_HOME/llmlat-processor, else ~/.local/state/llmlat-processor",
    )


class MetricsBlock(Block):
    """What is counted."""

    max_series: Count = Field(
        default=_METERING.max_series,
        description="most of one metric; what is over shares one series",
    )


class Configuration(Block):
    """A config file of `llmlat processor`."""

    mode: Annotated[Mode, one_of(Mode), offered(Mode)] = Field(
        default=Mode.INLINE,
        description="inline sends spans on with what was learned; tap sends only what was learned",
    )
    receivers: ReceiversBlock = Field(
        default_factory=ReceiversBlock, description="what is received, and where"
    )
    destinations: DestinationsBlock = Field(
        default_factory=DestinationsBlock, description="what goes where"
    )
    window: WindowBlock = Field(default_factory=WindowBlock, description="when a trace is let go")
    views: ViewsBlock = Field(default_factory=ViewsBlock, description="what is added to a trace")
    journal: JournalBlock = Field(
        default_factory=JournalBlock, description="what outlives the process"
    )
    state: StateBlock = Field(default_factory=StateBlock, description="where that is kept")
    telemetry: TelemetryBlock | None = Field(
        default_factory=TelemetryBlock,
        description="where the processor tells of itself; null is nowhere",
    )
    metrics: MetricsBlock = Field(default_factory=MetricsBlock, description="what is counted")
    workers: Count = Field(default=1, description="processes that share the work, by trace id")


def json_schema() -> Mapping[str, object]:
    """The schema of a config file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Configuration.model_json_schema(),
    }


def keys_at(path: Keys) -> list[str]:
    """The keys of the mapping that a path leads to; none where the schema has no such mapping."""
    block: type[Block] | None = Configuration
    for key in path:
        field = block.model_fields.get(str(key)) if block is not None else None
        block = None if field is None else _block_of(field.annotation)
    return [] if block is None else list(block.model_fields)


def _block_of(annotation: object) -> type[Block] | None:
    """The model of a field, optional or not."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Block):
            return kind
    return None


def _may_be_nothing(block: type[Block], key: str) -> bool:
    return NoneType in get_args(block.model_fields[key].annotation)
