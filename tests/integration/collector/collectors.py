"""Collectors in front of the processor: the real one with the configs that are shipped, and Rotel.

app ─> collector ─> llmlat processor ─> collector (or the end) ─> backend
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import rotel  # type: ignore[import-untyped]
import yaml

from backends import Addresses, binary
from children import Child, Children
from tests.deployment.files import OTELCOL, documents

NOT_HAD: Final = frozenset({"load_balancing", "tail_sampling"})
"""Components that are in what is shipped and not in the Collector that can be built."""

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PATIENCE_S: Final = 60
_NOWHERE: Final = "nop"

Config = dict[str, Any]


@dataclass(frozen=True)
class Shipped:
    """A config of the Collector, as far as it can be run.

    Attributes:
        config: without what cannot be had.
        left_out: which of its components that were.
    """

    config: Config
    left_out: frozenset[str]


def shipped(name: str) -> Shipped:
    """One of the configs; a pipeline whose only exporter cannot be had ends in `nop`."""
    (config,) = documents(OTELCOL / f"{name}.yaml")
    left_out = set()
    for kind in ("processors", "exporters"):
        for component in sorted(set(map(_type, config[kind])) & NOT_HAD):
            left_out.add(component)
            config[kind] = _without(config[kind], component)
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("processors", "exporters"):
            pipeline[kind] = [each for each in pipeline[kind] if _type(each) not in NOT_HAD]
        if not pipeline["exporters"]:
            config["exporters"][_NOWHERE] = None
            pipeline["exporters"] = [_NOWHERE]
    return Shipped(config, frozenset(left_out))


def _type(component: str) -> str:
    return component.partition("/")[0]


def _without(components: Config, unwanted: str) -> Config:
    return {key: value for key, value in components.items() if _type(key) != unwanted}


def collector(config: Config, folder: Path) -> list[str]:
    """The command of a real Collector with a config.

    Raises:
        MissingPeerError: it isn't built.
    """
    file = folder / "collector.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return [str(binary("collector")), f"--config={file}"]


def variables(addresses: Addresses, folder: Path) -> dict[str, str]:
    """What the shipped configs read, of the Collector and of the processor."""
    return {
        "COLLECTOR_OTLP_GRPC": addresses.otlp_grpc,
        "COLLECTOR_OTLP_HTTP": addresses.otlp_http,
        "COLLECTOR_OTLP_BACK": addresses.back,
        "COLLECTOR_HEALTH": addresses.collector_health,
        "COLLECTOR_QUEUE": str(folder / "queue"),
        "PROCESSOR_OTLP_GRPC": addresses.processor,
        "PROCESSOR_STATE": str(folder / "state"),
        "PROCESSOR_TELEMETRY": "127.0.0.1:0",
        "BACKEND_OTLP_GRPC": addresses.jaeger_otlp,
    }


def start_collector(
    children: Children, config: Config, addresses: Addresses, folder: Path, **changed: str
) -> Child:
    """Start the real Collector, and wait until it is ready.

    Args:
        children: who starts it.
        config: one that is shipped.
        addresses: where everybody listens.
        folder: for its config and its queue.
        changed: variables that are others than `addresses` says.
    """
    command = collector(config, folder)
    child = children.start("collector", command, **{**variables(addresses, folder), **changed})
    child.healthy(f"http://{addresses.collector_health}/health/status")
    return child


def start_processor(
    children: Children,
    config: str,
    addresses: Addresses,
    folder: Path,
    name: str = "processor",
    *,
    workers: int = 1,
) -> Child:
    """Start the processor with a shipped config, for so many workers; it may not listen yet."""
    (document,) = documents(OTELCOL / f"processor-{config}.yaml")
    assert "workers" not in document
    file = folder / "processor.yaml"
    file.write_text(yaml.safe_dump({**document, "workers": workers}), encoding="utf-8")
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    command = [llmlat, "processor", f"--config={file}"]
    return children.start(name, command, **variables(addresses, folder))


def start_rotel(
    children: Children, listen: str, http: str, export: str, *more: str, name: str = "rotel"
) -> Child:
    """Start Rotel, a collector that shares no code with the other, and wait until it listens.

    It has one receiver of a kind and one exporter of traces: two of it are as one Collector.
    """
    agent = Path(rotel.__file__).with_name("rotel-agent")
    options = {
        "otlp-grpc-endpoint": listen,
        "otlp-http-endpoint": http,
        "exporter": "otlp",
        "otlp-exporter-endpoint": f"http://{export}",
        "otlp-exporter-protocol": "grpc",
        "otlp-exporter-retry-initial-backoff": "200ms",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    child = children.start(name, [str(agent), "start", *words, *more])
    child.listening(listen)
    return child


@contextmanager
def sender(address: str) -> Iterator[Any]:
    """What exports a serialized request, and waits for the answer."""
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(EXPORT)
        yield lambda content: export(content, timeout=PATIENCE_S, wait_for_ready=True)


def send(address: str, requests: Sequence[bytes]) -> None:
    """Export requests one after the other, as an app does."""
    with sender(address) as export:
        for content in requests:
            export(content)
