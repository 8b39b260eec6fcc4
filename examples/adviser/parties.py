"""The parties of the demo, each a process of its own: how each is started, and what others need.

adviser ──> gateway ──> model server <── colleagues
   └ spans ─────┴ spans ──> llmlat processor ──> a viewer
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from children import Child, Children

__all__ = [
    "ENGINES",
    "LOOPBACK",
    "adviser_asks",
    "busy",
    "free_address",
    "start_engine",
    "start_gateway",
    "start_processor",
    "start_watch",
]

LOOPBACK = "127.0.0.1"
HERE = Path(__file__).parent
GATEWAY = HERE.parent / "gateway-asgi" / "gateway.py"
ENGINES = {"llama.cpp": "llama_server.py", "emulated": "emulated_engine.py"}

Variables = Mapping[str, str]
"""What a process has in its environment beside ours."""


def start_engine(children: Children, engine: str) -> Variables:
    """Start the model server and wait until it answers; the environment of its clients."""
    server = children.start("model-server", _python(HERE / ENGINES[engine]))
    announced = server.announcement()
    url = announced["url"]
    server.healthy(f"{url}/health")
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "ADVISER_MODEL": announced["model"],
    }


def start_gateway(children: Children, server: Variables, telemetry: str) -> Variables:
    """Start the gateway before a model server; the environment of its clients."""
    variables = {**server, **_exporting(telemetry, "gateway")}
    url = children.start("gateway", _python(GATEWAY), **variables).announcement()["url"]
    return {**server, "OPENAI_BASE_URL": f"{url}/v1"}


def start_processor(children: Children, export: str, *arguments: str) -> str:
    """Start `llmlat processor`; the address to which apps and collectors send."""
    return _start_llmlat(
        children, "processor", ["processor", f"--export={export}", *arguments], free_address()
    )[1]


def start_watch(children: Children, name: str, arguments: Sequence[str]) -> tuple[Child, str]:
    """Start `llmlat watch`, and where it listens; it draws as it would on our standard output."""
    variables = _terminal()
    return _start_llmlat(children, name, ["watch", *arguments], free_address(), **variables)


@contextmanager
def busy(children: Children, server: Variables) -> Iterator[None]:
    """Three colleagues keep the model server busy; else the adviser has no queue to wait in."""
    colleagues = children.start("colleagues", _python(HERE / "colleagues.py"), **server)
    yield
    colleagues.still_running()
    colleagues.stop()


def adviser_asks(
    children: Children, client: Variables, telemetry: str, on_step: Callable[[str], None]
) -> None:
    """Run the adviser to its end, and tell each of its steps."""
    variables = {**client, **_exporting(telemetry, "adviser")}
    children.start("adviser", _python(HERE / "app.py"), **variables).finished(on_step)


def free_address() -> str:
    """An address on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{probe.getsockname()[1]}"


def _start_llmlat(
    children: Children, name: str, arguments: Sequence[str], address: str, **variables: str
) -> tuple[Child, str]:
    """Start one of our own commands that receive spans, and wait until it does."""
    llmlat = str(Path(sys.executable).with_name("llmlat"))
    child = children.start(name, [llmlat, *arguments, f"--listen={address}"], **variables)
    child.listening(address)
    return child, address


def _exporting(telemetry: str, service: str) -> Variables:
    """What sends a process's spans there, soon: the demo waits for those of its servers."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{telemetry}",
        "OTEL_SERVICE_NAME": service,
        "OTEL_BSP_SCHEDULE_DELAY": "500",
    }


def _python(script: Path) -> list[str]:
    return [sys.executable, str(script)]


def _terminal() -> Variables:
    """What makes a process that writes to a file draw as it would on our standard output."""
    console = Console()
    coloured = (
        {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0"}
        if console.is_terminal and not console.no_color
        else {}
    )
    encoding = sys.stdout.encoding or "utf-8"
    return {"COLUMNS": str(console.width), "PYTHONIOENCODING": encoding, **coloured}
