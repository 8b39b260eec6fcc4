"""How the Collector, the processor and Jaeger of this example are started, and where they answer.

app ─> collector: in ─> processor ─> collector: out ─> Jaeger
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

__all__ = ["Addresses", "Backend", "MissingPeerError", "binary", "collector", "jaeger", "processor"]

HERE: Final = Path(__file__).resolve().parent
PINS: Final = HERE.parents[1] / "tests" / "peers"
_PINNED_BY: Final = ("go.mod", "go.sum", "main.go")
_LOOPBACK: Final = "127.0.0.1"


class MissingPeerError(Exception):
    """The Collector or Jaeger isn't built; the message says how it will be."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where everything listens, each `host:port`; the defaults are those of the two YAML files.

    Attributes:
        otlp_grpc: the collector, for apps.
        otlp_http: the same over HTTP.
        processor: `llmlat processor`.
        back: the collector again, for what comes back from the processor.
        jaeger_otlp: Jaeger, for spans.
        jaeger_http: Jaeger's UI and query API.
        jaeger_grpc: its query API over gRPC.
        collector_health: answers when the collector is ready.
        jaeger_health: answers when Jaeger is ready.
    """

    otlp_grpc: str = f"{_LOOPBACK}:4317"
    otlp_http: str = f"{_LOOPBACK}:4318"
    processor: str = f"{_LOOPBACK}:4327"
    back: str = f"{_LOOPBACK}:4337"
    jaeger_otlp: str = f"{_LOOPBACK}:4347"
    jaeger_http: str = f"{_LOOPBACK}:16686"
    jaeger_grpc: str = f"{_LOOPBACK}:16685"
    collector_health: str = f"{_LOOPBACK}:13133"
    jaeger_health: str = f"{_LOOPBACK}:13134"

    @classmethod
    def free(cls) -> Addresses:
        """Ports that nobody listens on at this moment, all different."""
        with ExitStack() as held:
            return cls(*(_free(held) for _ in fields(cls)))


@dataclass(frozen=True, slots=True)
class Backend:
    """A process to be started.

    Attributes:
        command: the program and its arguments.
        environment: variables in addition to one's own.
        ready: URL that answers with 200 once it takes spans.
    """

    command: list[str]
    environment: Mapping[str, str]
    ready: str


def collector(addresses: Addresses, queue: Path) -> Backend:
    """The Collector with both pipelines.

    Args:
        addresses: where it listens, and where it sends to.
        queue: folder for what waits for the processor; made if there is none.

    Raises:
        MissingPeerError: it isn't built.
    """
    variables = {
        "COLLECTOR_OTLP_GRPC": addresses.otlp_grpc,
        "COLLECTOR_OTLP_HTTP": addresses.otlp_http,
        "COLLECTOR_OTLP_BACK": addresses.back,
        "COLLECTOR_HEALTH": addresses.collector_health,
        "COLLECTOR_QUEUE": str(queue),
        "PROCESSOR_OTLP_GRPC": addresses.processor,
        "JAEGER_OTLP_GRPC": addresses.jaeger_otlp,
    }
    command = [str(binary("collector")), f"--config={HERE / 'collector.yaml'}"]
    return Backend(command, variables, f"http://{addresses.collector_health}/health/status")


def jaeger(addresses: Addresses) -> Backend:
    """Jaeger, all in one process, with what it stores in memory.

    Raises:
        MissingPeerError: it isn't built.
    """
    variables = {
        "JAEGER_OTLP_GRPC": addresses.jaeger_otlp,
        "JAEGER_QUERY_HTTP": addresses.jaeger_http,
        "JAEGER_QUERY_GRPC": addresses.jaeger_grpc,
        "JAEGER_HEALTH": addresses.jaeger_health,
        "JAEGER_UI_CONFIG": str(HERE / "jaeger-ui.json"),
    }
    command = [str(binary("jaeger")), f"--config={HERE / 'jaeger.yaml'}"]
    return Backend(command, variables, f"http://{addresses.jaeger_health}/health/status")


def processor(addresses: Addresses, state: Path, *options: str) -> list[str]:
    """The command of `llmlat processor` in between; it is ready when its port takes connections.

    Args:
        addresses: where it listens, and where it sends to.
        state: folder for what it keeps of spans that are on their way; made if there is none.
        options: more of them.
    """
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    ends = (f"--listen={addresses.processor}", f"--export={addresses.back}")
    return [llmlat, "processor", *ends, f"--state={state}", *options]


def binary(peer: str) -> Path:
    """The program that `make peers` has built of what is pinned now.

    Args:
        peer: `collector` or `jaeger`.

    Raises:
        MissingPeerError: there is none.
    """
    built = cache_folder().glob(f"{peer}-{pinned(peer)}-go*")
    newest = max(built, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        raise MissingPeerError(f"the real {peer} is not built yet; run: make peers")
    return newest


def pinned(peer: str) -> str:
    """What is pinned of a peer, in a few letters: another pin, another name of the program."""
    files = (PINS / peer / name for name in _PINNED_BY)
    held = [path.name.encode() + path.read_bytes() for path in files if path.exists()]
    return hashlib.sha256(b"\0".join(held)).hexdigest()[:12]


def cache_folder() -> Path:
    """Where `make peers` keeps what it builds."""
    if chosen := os.environ.get("LLMLAT_PEERS"):
        return Path(chosen).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "llmlat-otel" / "peers"


def _free(held: ExitStack) -> str:
    """A free port, kept busy until all of them are found."""
    probe = held.enter_context(socket.socket())
    probe.bind((_LOOPBACK, 0))
    return f"{_LOOPBACK}:{probe.getsockname()[1]}"
