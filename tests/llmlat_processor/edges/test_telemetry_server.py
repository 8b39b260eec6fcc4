"""What the processor tells of itself, as it is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from llmlat_processor.edges.telemetry_server import TelemetryServer
from llmlat_processor.settings import Listener
from tests.llmlat_processor.receiving import certificates

ROUTES = {
    "/metrics": lambda _: (200, "text/plain; version=0.0.4", b"spans 1\n"),
    "/status": lambda _: (200, "application/json", b"{}"),
    "/healthz": lambda _: (200, "text/plain", b"ok"),
    "/accepted": lambda accepts: (200, accepts, b""),
    "/readyz": lambda _: (503, "text/plain", b"starting"),
}
LOOPBACK = Listener("127.0.0.1:0")


@contextmanager
def telling(listener: Listener = LOOPBACK) -> Iterator[str]:
    server = TelemetryServer(listener, ROUTES)
    try:
        yield server.address
    finally:
        server.stop()


def test_each_page_is_made_when_it_is_fetched_as_the_client_accepts_it() -> None:
    accepts = {"accept": "text/html"}
    with telling() as address:
        answers = {path: httpx.get(f"http://{address}{path}", headers=accepts) for path in ROUTES}

    for path, page in ROUTES.items():
        told = answers[path]
        assert (told.status_code, told.headers["content-type"], told.content) == page("text/html")


def test_a_head_is_a_page_without_its_body() -> None:
    with telling() as address:
        answer = httpx.head(f"http://{address}/metrics")

    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "status", "told"),
    [
        ("GET", "/", 404, "there are /metrics, /status, /healthz, /accepted, /readyz"),
        ("POST", "/metrics", 405, "GET /metrics"),
    ],
)
def test_who_is_misled_is_told_what_to_do(method: str, path: str, status: int, told: str) -> None:
    with telling() as address:
        answer = httpx.request(method, f"http://{address}{path}")

    assert answer.status_code == status
    assert told in answer.text


@pytest.mark.parametrize(
    ("shown", "statuses"), [("Bearer other", [401, 401]), ("Bearer secret", [200, 200])]
)
def test_the_token_is_for_what_is_told_and_not_for_health(shown: str, statuses: list[int]) -> None:
    with telling(Listener("127.0.0.1:0", token="secret")) as address:
        answers = [
            httpx.get(f"http://{address}{path}", headers={"authorization": shown})
            for path in ("/metrics", "/status")
        ]
        health = [httpx.get(f"http://{address}{path}") for path in ("/healthz", "/readyz")]

    assert [answer.status_code for answer in answers] == statuses
    assert [answer.status_code for answer in health] == [200, 503]


def test_it_is_told_over_tls(tmp_path: Path) -> None:
    made = certificates(tmp_path)

    with (
        telling(Listener("127.0.0.1:0", made.tls)) as address,
        httpx.Client(verify=made.context(as_client=False)) as client,
    ):
        assert client.get(f"https://{address}/metrics").text == "spans 1\n"
