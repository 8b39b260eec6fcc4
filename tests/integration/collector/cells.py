"""The ways in which the processor stands behind a collector, each up to a real Jaeger.

    inline   app ─> entrance ─> processor ─> exit ─> passage ─> Jaeger
    tap      app ─┬─────────────────────────> exit ─> passage ─> Jaeger
                  └> entrance ─> processor ───┘ lanes

One Collector is entrance and exit, with two receivers. A Rotel has one receiver of a kind and one
exporter of traces (`--exporters-traces=a,b` is refused), so that there are two of it; in the tap,
who sends has two exporters in the place of the Collector's fan-out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backends import Addresses
from children import Child, Children
from tests.integration.collector.collectors import (
    Config,
    send,
    shipped,
    start_collector,
    start_processor,
    start_rotel,
)

SAMPLER: Final = "probabilistic_sampler"
"""Says in each span how likely it was to keep it, even where it keeps all."""


@dataclass(frozen=True)
class Cell:
    """One of the ways.

    Attributes:
        collector: `collector` or `rotel`.
        mode: `inline` or `tap`.
        workers: processes of the processor.
    """

    collector: str
    mode: str
    workers: int = 1

    def __str__(self) -> str:
        """As the name of a test."""
        return f"{self.collector}-{self.mode}-{self.workers}"


CELLS: Final = tuple(
    Cell(collector, mode, workers)
    for collector in ("collector", "rotel")
    for mode, workers in (("inline", 1), ("tap", 1), ("inline", 2))
)


@dataclass(frozen=True)
class Line:
    """What runs.

    Attributes:
        entrances: where each request is sent to.
        stages: its processes in the order in which spans go through them.
    """

    entrances: Sequence[str]
    stages: Sequence[Child]

    def send(self, requests: Sequence[bytes]) -> None:
        """Export requests one after the other, as an app does."""
        for entrance in self.entrances:
            send(entrance, requests)

    def drain(self) -> None:
        """End it from the front to the back: nothing is on its way any more."""
        for stage in self.stages:
            stage.still_running()
            stage.stop()


@contextmanager
def running(cell: Cell, backend: str, folder: Path) -> Iterator[Line]:
    """One of them on free ports; every process is stopped by its id.

    Args:
        cell: which.
        backend: where the exit sends to.
        folder: for logs, queue and journal.

    Raises:
        MissingPeerError: the Collector is not built.
    """
    addresses = Addresses.free()
    with Children(folder) as children:
        middle = start_processor(children, cell.mode, addresses, folder, workers=cell.workers)
        middle.listening(addresses.processor)
        if cell.collector == "rotel":
            yield _between_rotels(cell, children, addresses, middle, backend)
            return
        ends = {"BACKEND_OTLP_GRPC": backend}
        around = start_collector(children, config_of(cell), addresses, folder, **ends)
        yield Line([addresses.otlp_grpc], [middle, around])


@contextmanager
def without_a_tap(cell: Cell, backend: str, folder: Path) -> Iterator[Line]:
    """The way that spans had before there was a tap: entrance, exit and backend."""
    addresses = Addresses.free()
    with Children(folder) as children:
        if cell.collector == "rotel":
            only = start_rotel(children, addresses.otlp_grpc, addresses.otlp_http, backend)
        else:
            config = config_of(cell)
            del config["service"]["pipelines"]["traces/tap"]
            config["service"]["pipelines"]["traces/in"]["exporters"].remove("forward/tap")
            ends = {"BACKEND_OTLP_GRPC": backend}
            only = start_collector(children, config, addresses, folder, **ends)
        yield Line([addresses.otlp_grpc], [only])


def config_of(cell: Cell) -> Config:
    """What is shipped; in the tap without the example of a sampler, which changes what it keeps."""
    config = shipped(cell.mode).config
    if cell.mode == "tap":
        config["service"]["pipelines"]["traces/out"]["processors"].remove(SAMPLER)
    return config


def _between_rotels(
    cell: Cell, children: Children, addresses: Addresses, middle: Child, backend: str
) -> Line:
    ports = Addresses.free()  # over HTTP, where nobody sends to
    first = start_rotel(
        children, addresses.otlp_grpc, ports.otlp_http, addresses.processor, name="rotel-in"
    )
    last = start_rotel(children, addresses.back, ports.back, backend, name="rotel-out")
    own_way = [addresses.back] if cell.mode == "tap" else []
    return Line([*own_way, addresses.otlp_grpc], [first, middle, last])
