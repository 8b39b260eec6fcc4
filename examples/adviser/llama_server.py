"""A real llama.cpp server on loopback, with the demo's 270M model and few places in its batch."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

import xllamacpp  # type: ignore[import-untyped]

from model_file import model_file

__all__ = ["main"]

MODEL = "gemma-3-270m"
_CONTEXT_TOKENS_PER_SLOT = 1024


def main() -> None:
    """Serve until SIGTERM, and print the address as one JSON line once the model is loaded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--slots", type=int, default=2, help="requests in the batch (default: 2)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that a scratch folder is removed
    path = model_file()
    server = xllamacpp.Server(_parameters(path, arguments.port, arguments.slots))
    print(json.dumps({"url": server.listening_address, "model": MODEL}), flush=True)
    threading.Event().wait()


def _parameters(path: Path, port: int, slots: int) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * _CONTEXT_TOKENS_PER_SLOT
    # Its threads spin while they wait for each other: as soon as anything else wants a core, two
    # threads on two cores are twenty times slower than one (measured at a load of 5).
    parameters.cpuparams.n_threads = min(4, max(1, (os.cpu_count() or 1) // 2))
    parameters.cache_ram_mib = 0  # no second copy of prompts in memory
    parameters.chat_template = Path(__file__).with_name("chat_template.jinja").read_text("utf-8")
    return parameters


if __name__ == "__main__":
    main()
