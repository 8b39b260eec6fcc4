"""Children of every kind send their spans, as processes of their own."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.settings import Listener
from llmlat_semconv import attributes as names
from tests.integration.install.collector import BIN, PATIENCE_S, environment, run, run_python

PRELUDE = "import os, sys\nimport llmlat_otel.auto, llmlat_otel\n"
PARENT = 'with llmlat_otel.tool("parent"): pass\n'
FORK = """
children = []
for number in range(3):
    if (child := os.fork()) == 0:
        with llmlat_otel.tool(f"child {number}"): pass
        sys.exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""
PROCESSES = """
import multiprocessing, sys
import llmlat_otel.auto, llmlat_otel

def work(number):
    with llmlat_otel.tool(f"child {number}"): pass

if __name__ == "__main__":
    with llmlat_otel.tool("parent"): pass
    kind = multiprocessing.get_context(sys.argv[1])
    children = [kind.Process(target=work, args=(number,)) for number in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
"""
POOL = """
from concurrent.futures import ProcessPoolExecutor
import llmlat_otel.auto, llmlat_otel

def work(number):
    with llmlat_otel.tool("in a pool"): pass
    return number

if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        assert list(pool.map(work, range(3))) == [0, 1, 2]
"""
APP = """
import os
import llmlat_otel.auto, llmlat_otel

with llmlat_otel.tool("master"): pass

def app(environ, start_response):
    with llmlat_otel.tool("worker"): pass
    start_response("200 OK", [("content-length", "2")])
    return [b"ok"]
"""
EVERYBODY = [f"execute_tool {each}" for each in ("child 0", "child 1", "child 2", "parent")]


def are_processes_of_their_own(spans):
    """Whether each has a pid and an instance id that no other has."""
    ids = [
        (span.process[names.PROCESS_PID], span.process[names.SERVICE_INSTANCE_ID]) for span in spans
    ]
    return len({pid for pid, _ in ids}) == len({each for _, each in ids}) == len(spans)


def test_ex_01_and_ex_06_forked_children_of_a_parent_that_has_made_spans(collector):
    done = run_python(PRELUDE + PARENT + FORK, environment(collector.url))
    assert (done.stderr, done.returncode) == ("", 0)
    assert collector.names == EVERYBODY
    assert are_processes_of_their_own(collector.spans)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_ex_02_children_of_multiprocessing_that_leave_without_atexit(kind, collector, tmp_path):
    (tmp_path / "program.py").write_text(PROCESSES, encoding="utf-8")
    done = run([sys.executable, "program.py", kind], environment(collector.url), tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert collector.names == EVERYBODY
    assert are_processes_of_their_own(collector.spans)


def test_a_process_pool(collector, tmp_path):
    (tmp_path / "program.py").write_text(POOL, encoding="utf-8")
    done = run([sys.executable, "program.py"], environment(collector.url), tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert collector.names == ["execute_tool in a pool"] * 3


def test_locks_that_are_held_at_a_fork_stop_no_child(collector):
    held = """
from llmlat_otel.core import instrumentor, runtime
from llmlat_otel import exporting
runtime._lock.acquire(); instrumentor._lock.acquire(); exporting._errands._lock.acquire()
if (child := os.fork()) == 0:
    llmlat_otel.uninstrument(); llmlat_otel.instrument()
    with llmlat_otel.tool("child"): pass
    sys.exit(not llmlat_otel.flush())
assert os.waitpid(child, 0)[1] == 0
"""
    done = run_python(PRELUDE + held, environment(collector.url))
    assert (done.stderr, done.returncode) == ("", 0)
    assert collector.names == ["execute_tool child"]


def test_workers_of_gunicorn_with_a_preloaded_app(collector, tmp_path):
    (tmp_path / "served.py").write_text(APP, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        os.set_inheritable(listening.fileno(), True)
        command = [str(BIN / "gunicorn"), "--preload", "--workers=2", "--log-level=error"]
        command += [f"--bind=fd://{listening.fileno()}", "served:app"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(collector.url), pass_fds=[listening.fileno()]
        ) as server:
            try:
                url = f"http://127.0.0.1:{port}/"
                with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                    assert answer.read() == b"ok"
            finally:
                server.send_signal(signal.SIGTERM)
                assert server.wait(PATIENCE_S) == 0
    assert collector.names == ["execute_tool master", "execute_tool worker"]
    assert are_processes_of_their_own(collector.spans)


def test_a_child_of_a_parent_whose_grpc_connection_is_open():
    taken: list[str] = []

    def take(decoded):
        taken.extend(span.name for span in decoded.spans)
        return ""

    receiver = GrpcReceiver(Listener("127.0.0.1:0"), take, max_message_bytes=1 << 20)
    try:
        sent = "assert llmlat_otel.flush()\n"
        variables = environment(f"http://{receiver.address}", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
        done = run_python(PRELUDE + PARENT + sent + FORK, variables)
    finally:
        receiver.stop()
    assert (done.stderr, done.returncode) == ("", 0)
    assert sorted(taken) == EVERYBODY
