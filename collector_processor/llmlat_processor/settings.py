"""What can be set of the processor, in frozen values; how each may be written is for `config`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from llmlat_processor.window import MIB, SECOND_NS, Limits

KIB: Final = 1 << 10
GIB: Final = 1 << 30

WATCHED: Final = Limits(hold_max_ns=600 * SECOND_NS)
"""For watching a copy of the spans: nobody waits for them, so a long agent is held to its end."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Mode(Enum):
    """What is sent on: the spans themselves, or what is derived of a copy of them."""

    INLINE = "inline"
    TAP = "tap"


class Explained(Enum):
    """Which traces are explained: those in which something speaks of GenAI or phases, or all."""

    GENAI = "genai"
    ALL = "all"


class Protocol(Enum):
    """How OTLP is carried."""

    GRPC = "grpc"
    HTTP = "http"


class Compression(Enum):
    """Whether requests are compressed; AUTO: not on loopback, lightly elsewhere."""

    AUTO = "auto"
    GZIP = "gzip"
    NONE = "none"


class Durability(Enum):
    """What the journal survives: NORMAL the end of this process, FULL that of the machine too."""

    NORMAL = "normal"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Who a listener is, and whom it speaks with; files in PEM.

    Attributes:
        certificate: its certificate, with the chain behind it.
        key: the private key of that.
        client_authorities: who must have signed the certificates of clients; None asks for none.
    """

    certificate: Path
    key: Path
    client_authorities: Path | None = None


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Whom a sender believes, and who it is; files in PEM.

    Attributes:
        authorities: who must have signed the certificate of the destination; None: whom the
            system trusts.
        certificate: our own, where the destination asks for one.
        key: the private key of that.
    """

    authorities: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Where something is received or told.

    Attributes:
        address: `host:port`; no host is loopback, port 0 any free one.
        tls: None speaks in the clear.
        token: what clients must show as `authorization: Bearer`; empty asks for none.
    """

    address: str
    tls: ServerTls | None = None
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How spans are sent on.

    Attributes:
        request_bytes: largest request that is sent; servers refuse more than 4 MiB by default.
        queue_bytes: what waits to be sent; from there on nothing more is accepted.
        deadline_s: how long the destination may take to answer, in seconds.
        first_retry_s: pause before a request is sent again, in seconds; it grows with each time.
        longest_retry_s: longest such pause, unless the destination asks for a longer one.
        give_up_s: how long a request is sent again and again before its spans are dropped.
        drain_s: how long the end waits for what is still to be sent, in seconds.
    """

    request_bytes: int = 4 * MIB - 64 * KIB
    queue_bytes: int = 64 * MIB
    deadline_s: float = 10
    first_retry_s: float = 0.5
    longest_retry_s: float = 5
    give_up_s: float = 300
    drain_s: float = 10


@dataclass(frozen=True, slots=True)
class Destination:
    """Where something is sent to.

    Attributes:
        endpoint: `host:port`, or a URL; `https://` is TLS. Over HTTP the path of the signal is
            added, as to `OTEL_EXPORTER_OTLP_ENDPOINT`.
        protocol: how.
        tls: for `https://`, or for a bare `host:port` over TLS; None otherwise.
        headers: sent with each request.
        token: sent as `authorization: Bearer`; empty sends none.
        compression: whether requests are compressed.
        delivery: batches, queue and retries.
    """

    endpoint: str
    protocol: Protocol = Protocol.GRPC
    tls: ClientTls | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS, repr=False)
    token: str = field(default="", repr=False)
    compression: Compression = Compression.AUTO
    delivery: Delivery = Delivery()


@dataclass(frozen=True, slots=True)
class Views:
    """What is added to a trace.

    Attributes:
        lane: its critical path as spans; its root sums everything up.
        annotations: attributes and events on the spans themselves. Without them all that is said
            of a trace is on the lane.
        jaeger_warnings: its findings as warnings of the spans that they are about, in the form
            that Jaeger shows as such.
        explained: which traces anything is added to at all.
    """

    lane: bool = True
    annotations: bool = True
    jaeger_warnings: bool = False
    explained: Explained = Explained.ALL


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """What is kept on disk of spans that were accepted and not sent yet.

    Attributes:
        max_bytes: most of it; from there on nothing more is accepted.
        durability: what it survives.
    """

    max_bytes: int = GIB
    durability: Durability = Durability.NORMAL


@dataclass(frozen=True, slots=True)
class Metering:
    """What is counted.

    Attributes:
        destination: where metrics are sent to; None sends none, they can still be fetched.
        interval_s: how often they are sent, in seconds.
        max_series: most series of one metric; what is over goes into one series for all of it.
    """

    destination: Destination | None = None
    interval_s: float = 60
    max_series: int = 500


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a receiving processor.

    Attributes:
        window: when traces are let go, and how much is held.
        max_message_bytes: largest request that is accepted, after decompression.
        waiting_bytes: most that may wait to be looked at; above it exporters are asked to retry.
        tick_s: how often, in seconds, the window is asked for what is complete.
        views: what is added to them.
    """

    window: Limits = field(default_factory=lambda: WATCHED)
    max_message_bytes: int = 64 * MIB
    waiting_bytes: int = 64 * MIB
    tick_s: float = 0.25
    views: Views = Views()


INLINE: Final = Settings(window=Limits())
"""For what stands in the way of the spans: somebody waits for them at the other end."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One processor as an operator sets it up; made of a config file or of the command line.

    Attributes:
        mode: whether the spans themselves are sent on.
        grpc: where OTLP is received over gRPC; None for not at all.
        http: the same over HTTP.
        spans: where the spans go; None in a tap.
        derived: where lanes go; None sends them with the spans.
        settings: limits, and what is added.
        journal: None keeps nothing on disk.
        state: folder of journal and clock state; None keeps neither.
        metering: what is counted, and where it is sent to.
        telemetry: where health, metrics and the books are told; None for nowhere but the health
            of the receivers themselves.
        workers: processes that share the work, by trace id.
    """

    mode: Mode = Mode.INLINE
    grpc: Listener | None = Listener("127.0.0.1:4317")
    http: Listener | None = None
    spans: Destination | None = None
    derived: Destination | None = None
    settings: Settings = INLINE
    journal: JournalSettings | None = None
    state: Path | None = None
    metering: Metering = Metering()
    telemetry: Listener | None = None
    workers: int = 1
