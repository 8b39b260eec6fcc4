"""vLLM with two places, in the environment of VLLM_PYTHON, with the model of VLLM_MODEL.

Nothing here speaks of llmlat-otel: that it is installed beside vLLM is the whole set-up.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

__all__ = ["main"]

MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
OPTIONS = ("--max-num-seqs=2", "--max-model-len=512", "--enforce-eager")


def main() -> None:
    """Serve until SIGTERM; the url is told once the server is ready."""
    port = _free_port()
    command = [
        os.environ.get("VLLM_PYTHON", sys.executable),
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", os.environ.get("VLLM_MODEL", MODEL), "--host=127.0.0.1", f"--port={port}"),
        *OPTIONS,
        *os.environ.get("VLLM_OPTIONS", "").split(),
    ]
    with subprocess.Popen(command, stdout=sys.stderr) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        url = f"http://127.0.0.1:{port}"
        if _is_ready(server, url):
            print(json.dumps({"url": url}), flush=True)
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_ready(server: subprocess.Popen[bytes], url: str) -> bool:
    """Wait for it; whether it has come up."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return True
    return False


if __name__ == "__main__":
    main()
