"""A real vLLM server with the tiny Llama, in processes of its own, and how it is made to be slow.

    with VllmServer(folder, FEW_BLOCKS, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url}) as server:
        answer = server.complete(prompt=tokens(60), max_tokens=80)

A start takes half a minute and the three processes take 3 GB: share one per module where you can.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.engines import parts
from tests.engines.installed import bare_environment, python_path
from tests.faults.processor_run import free_port, is_alive, wait_until

PATIENCE_S: Final = 300.0
"""For a start, which takes 35 s on two idle cores, and for an answer."""

END_S: Final = 60.0
"""For an end in good order, before it is enforced."""

FEW_SLOTS: Final = ("--max-num-seqs=8",)
"""The ninth request at a time waits in the queue."""

SMALL_BUDGET: Final = ("--max-num-batched-tokens=64",)
"""A step takes 64 tokens: a prompt of 135 is prefilled in 64, 64 and 7."""

FEW_BLOCKS: Final = ("--num-gpu-blocks-override=12", "--max-model-len=256")
"""12 blocks of 32 tokens: four requests of 60 + 80 tokens at a time need 20, so that some are
preempted. No request may have more than 256 tokens."""

SLOW_STEPS: Final = ('--hf-overrides={"num_hidden_layers": 16}',)
"""A step takes some ms, so that clients see a token before many more are sampled: with two layers
vLLM's engine is faster than its own API server, which then answers when all is over."""

OWN_CLOCK: Final = ("unshare", "--time", "--monotonic=5000", "--boottime=5000", "--")
"""A prefix: the server's monotonic clock is 5000 s ahead of ours. Needs root."""

_ALWAYS: Final = (
    "--load-format=dummy",
    "--dtype=float32",
    "--enforce-eager",
    "--block-size=32",
    f"--served-model-name={parts.MODEL_NAME}",
    "--host=127.0.0.1",
)
_VARIABLES: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "NO_COLOR": "1",
}
_direct: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def tokens(count: int, first: int = 2) -> list[int]:
    """A prompt of so many tokens, none of them special; another first one shares no prefix."""
    return [2 + (first + number) % 500 for number in range(count)]


def variables(**more: str) -> dict[str, str]:
    """The variables of a program that imports vLLM, a server or not; without our code."""
    caches = {"VLLM_CACHE_ROOT": str(parts.vllm_folder() / "vllm-cache")}
    return {**bare_environment(), **_VARIABLES, **caches, **more}


class VllmServer:
    """`python -m vllm.entrypoints.openai.api_server` for as long as a block lasts.

    Attributes:
        url: where it listens, without a path.
        log: the file with all that its processes print.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        plugin: bool = True,
        prefix: Sequence[str] = (),
    ) -> None:
        """Nothing runs yet.

        Args:
            folder: the test's own, for the log and the metadata of our package.
            options: of vLLM, in addition to those of every server here.
            environment: variables in addition to `variables()`.
            plugin: whether this checkout is installed beside vLLM.
            prefix: a command that runs the server's, such as `OWN_CLOCK` of a time namespace.
        """
        port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"vllm-{port}.log"
        module = (str(parts.vllm_python()), "-m", "vllm.entrypoints.openai.api_server")
        model = (f"--model={parts.model()}", f"--port={port}")
        self._command = [*prefix, *module, *model, *_ALWAYS, *options]
        ours = {"PYTHONPATH": python_path(folder)} if plugin else {}
        self._environment = variables(**{**ours, **(environment or {})})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> VllmServer:
        """Start, and wait until it serves."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_until(self._is_up_or_gone, self.last_words, PATIENCE_S)
            assert self._process.poll() is None, self.last_words()
        except BaseException:
            self.stop(grace_s=0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Of the process that was started: the API server's, or that of the prefix."""
        assert self._process is not None
        return self._process.pid

    def pids(self) -> list[int]:
        """All of its processes that are alive, the first started first."""
        return sorted(_alive_in_group(self.pid))

    def stop(self, grace_s: float = END_S) -> int:
        """SIGTERM to the first process, as an operator does; its exit code.

        After `grace_s` seconds all that are left are killed. May be called before the end of the
        block: what is sent at the end has then been sent.
        """
        assert self._process is not None
        if grace_s:
            self._process.terminate()
            try:
                wait_until(self._is_gone, patience_s=grace_s)
            except AssertionError:
                print(f"vLLM had to be killed\n{self.last_words()}")
        if self.pids():
            os.killpg(self.pid, signal.SIGKILL)
        code = self._process.wait(PATIENCE_S)
        wait_until(self._is_gone, self.last_words)
        return code

    def last_words(self) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])

    # ── Requests ─────────────────────────────────────────────────────────────────────────────────

    def complete(self, **body: Any) -> dict[str, Any]:
        """The answer to a completion: `prompt` (text or token ids), `max_tokens`, any other field.

        It has all of `max_tokens`, unless `ignore_eos` is False.
        """
        with self.post("/v1/completions", {"ignore_eos": True, **body}) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def stream(self, **body: Any) -> Iterator[dict[str, Any]]:
        """The same in chunks, as they come; who closes this early has hung up."""
        fields = {"ignore_eos": True, "stream": True, **body}
        with self.post("/v1/completions", fields) as answer:
            for line in answer:
                data = line.decode().removeprefix("data: ").strip()
                if data and data != "[DONE]":
                    yield json.loads(data)

    def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Any:
        """The answer, to be read and closed; `model` need not be named."""
        content = json.dumps({"model": parts.MODEL_NAME, **body}).encode()
        sent = {"content-type": "application/json", **(headers or {})}
        request = urllib.request.Request(f"{self.url}{path}", content, sent)
        return _direct.open(request, timeout=PATIENCE_S)

    def metric(self, name: str) -> float:
        """The sum of all series of a metric of vLLM, such as `vllm:num_preemptions_total`."""
        with _direct.open(f"{self.url}/metrics", timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        values = [line.split()[-1] for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
        assert values, name
        return sum(map(float, values))

    def _is_up_or_gone(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        try:
            with _direct.open(f"{self.url}/health", timeout=PATIENCE_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _is_gone(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None and not self.pids()


def _alive_in_group(leader: int) -> list[int]:
    """A leader's group has no other member than what it has started, directly or not."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _group(pid) == leader and is_alive(pid)]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
