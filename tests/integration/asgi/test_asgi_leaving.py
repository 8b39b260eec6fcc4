"""A server that is told to end dies of the signal: what it has served was exported before."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.integration.asgi.wire import asked, request

SERVE = """
import socket, sys
import llmlat_otel.auto
import uvicorn
{imports}

async def answer({argument}):
    return {answer}

{make}
listening = socket.socket(fileno=int(sys.argv[1]))
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])
"""

APPLICATIONS = {
    "starlette": {
        "imports": """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route""",
        "argument": "_",
        "answer": 'PlainTextResponse("answered")',
        "make": 'app = Starlette(routes=[Route("/ask", answer)])',
    },
    "fastapi": {
        "imports": "from fastapi import FastAPI",
        "argument": "",
        "answer": '"answered"',
        "make": 'app = FastAPI()\napp.get("/ask")(answer)',
    },
}

ENVIRONMENT = {
    "OTEL_TRACES_EXPORTER": "console",
    "OTEL_BSP_SCHEDULE_DELAY": "600000",  # Nothing is exported unless somebody asks for it.
}


def spans_in(printed):
    """What was exported: one JSON document after another."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(printed):
        span, place = decoder.raw_decode(printed, place)
        yield span
        place += len(printed[place:]) - len(printed[place:].lstrip())


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_has_exported_what_it_has_served(application, ending):
    program = SERVE.format(**APPLICATIONS[application])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = subprocess.Popen(
            [sys.executable, "-c", program, str(listening.fileno())],
            pass_fds=[listening.fileno()],
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            came = asked(listening.getsockname()[1], request("/ask"))
            server.send_signal(ending)
            printed, _ = server.communicate(timeout=30)
        finally:
            server.kill()
    assert b"200 OK" in came
    (span,) = spans_in(printed)
    assert (span["name"], span["kind"]) == ("GET /ask", "SpanKind.SERVER")
    assert server.returncode == -ending, "it died of it, as it does without us"
