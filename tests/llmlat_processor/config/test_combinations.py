"""What does not go together is told with a way out; what only should be known is a warning."""

from __future__ import annotations

import pytest

from tests.llmlat_processor.config.reading import INLINE, TAP, configured, said

SPANS = "destinations: {{spans: {{endpoint: {0}}}}}\n"

NOT_TOGETHER = {
    "inline without spans": (
        "mode: inline",
        "1: destinations.spans: is missing; inline sends spans on, so say where to, or set mode: t",
    ),
    "inline with lanes only": (
        "destinations: {derived: {endpoint: a:1}}",
        "1: destinations.spans: is missing; inline sends spans on",
    ),
    "a tap without derived": (
        "mode: tap\ndestinations: {}",
        "2: destinations.derived: is missing; a tap sends lanes somewhere",
    ),
    "a tap with spans": (
        f"{TAP.rstrip()[:-1]}, spans: {{endpoint: a:1}}}}",
        "2: destinations.spans: a tap sends no spans on; leave it out, or set mode: inline",
    ),
    "a tap with a journal": (
        f"{TAP}journal: {{enabled: true}}",
        "3: journal.enabled: a tap keeps no journal",
    ),
    "a destination nowhere": (
        "destinations: {spans: {timeout: 1s}}",
        "1: destinations.spans.endpoint: is missing; write host:port or a URL, or set OTEL_",
    ),
    "nothing received": (
        f"{INLINE}receivers: {{grpc: null, http: null}}",
        "2: receivers: nothing would be received; write grpc: {} or http: {}",
    ),
    "files of TLS with http": (
        "destinations:\n  spans:\n    endpoint: http://a:1\n    tls: {ca_file: /ca}",
        "4: destinations.spans.tls: is for TLS, and the endpoint is http://; write https://",
    ),
    "a key without a certificate": (
        "destinations: {spans: {endpoint: a:1, tls: {key_file: /key}}}",
        "1: destinations.spans.tls.cert_file: is missing; key_file needs it",
    ),
    "a certificate without a key": (
        "destinations: {spans: {endpoint: a:1, tls: {cert_file: /cert}}}",
        "1: destinations.spans.tls.key_file: is missing; cert_file needs it",
    ),
    "a listener that is nobody": (
        f"{INLINE}telemetry: {{tls: {{key_file: /key}}}}",
        "2: telemetry.tls.cert_file: is missing; a listener needs it",
    ),
    "two authorizations": (
        "destinations: {spans: {endpoint: a:1, tls: {}, token: t, headers: {Authorization: u}}}",
        "1: destinations.spans.token: headers hold an authorization as well; leave one of them",
    ),
    "a request larger than the queue": (
        "destinations: {spans: {endpoint: a:1, sending_queue: {size: 1MiB}}}",
        "1: destinations.spans.max_request_size: 4032KiB do not fit into the sending queue of 1MiB",
    ),
    "a first pause longer than the longest": (
        "destinations: {spans: {endpoint: a:1, retry: {initial_interval: 6s}}}",
        "1: destinations.spans.retry.initial_interval: is longer than max_interval, 5s",
    ),
    "a trace that is never whole": (
        f"{INLINE}window: {{idle: 3s, hold_max: 2s}}",
        "2: window.idle: 3s are longer than hold_max, 2s",
    ),
    "a journal without room for one request": (
        f"{INLINE}journal: {{max_size: 1MiB}}",
        "2: journal.max_size: 1MiB have no room for one request of receivers.max_message_size",
    ),
    "telemetry where spans come in": (
        f"{INLINE}telemetry: {{endpoint: 'localhost:4317'}}",
        "2: telemetry.endpoint: receivers.grpc listens there too; choose another port",
    ),
    "gRPC and HTTP on one port": (
        f"{INLINE}receivers: {{grpc: {{endpoint: '0.0.0.0:1'}}, http: {{endpoint: ':1'}}}}",
        "2: receivers.http.endpoint: receivers.grpc listens there too; choose another port",
    ),
}


@pytest.mark.parametrize(("content", "words"), NOT_TOGETHER.values(), ids=NOT_TOGETHER)
def test_what_does_not_go_together_is_told(content: str, words: str) -> None:
    (problem,) = said(content)
    assert problem.startswith(words)


CIRCLES = [
    ("127.0.0.1:4317", "127.0.0.1:4317"),
    ("127.0.0.1:4317", "localhost:4317"),
    ("localhost:4317", "http://127.0.0.1:4317"),
    ("localhost:4317", "'[::1]:4317'"),
    ("'[::1]:4317'", "'http://[0:0:0:0:0:0:0:1]:4317'"),
    ("0.0.0.0:4317", "localhost:4317"),
    ("'[::]:4317'", "127.0.0.1:4317"),
    ("Gateway:4317", "gateway:4317"),
    ("0.0.0.0:443", "https://localhost"),
    ("127.0.0.1:4317", "':4317'"),
]


@pytest.mark.parametrize(("listens", "sends"), CIRCLES)
def test_spans_that_would_go_round_in_a_circle_are_refused(listens: str, sends: str) -> None:
    content = f"receivers: {{grpc: {{endpoint: {listens}}}}}\n{SPANS.format(sends)}"

    (problem,) = said(content)
    assert problem.startswith("2: destinations.spans.endpoint: ")
    assert "is where receivers.grpc listens, so that spans would go round" in problem


@pytest.mark.parametrize(
    ("listens", "sends"),
    [
        ("127.0.0.1:4317", "127.0.0.1:4319"),
        ("127.0.0.1:4317", "127.0.0.2:4317"),
        ("127.0.0.1:4317", "backend:4317"),
        ("0.0.0.0:4317", "backend:4317"),
    ],
)
def test_another_place_is_no_circle(listens: str, sends: str) -> None:
    content = f"receivers: {{grpc: {{endpoint: {listens}}}}}\n{SPANS.format(sends)}"
    assert configured(content).deployment.spans is not None


def test_no_destination_may_be_a_listener_of_ours() -> None:
    content = """
        destinations:
          spans: {endpoint: "backend:4317"}
          derived: {endpoint: "127.0.0.1:4318"}
          metrics: {endpoint: "127.0.0.1:8889"}
        receivers: {http: {}}
    """
    assert [problem.partition(" is where ")[2].split(" ")[0] for problem in said(content)] == [
        "receivers.http",
        "telemetry",
    ]


def test_files_that_cannot_be_read_are_told_with_the_reason() -> None:
    content = """
        receivers: {grpc: {tls: {cert_file: /cert, key_file: /key, client_ca_file: /ca}}}
        destinations: {spans: {endpoint: "https://a", tls: {ca_file: /ca}}}
    """
    missing = {"/key": "Permission denied", "/ca": "No such file or directory"}

    assert said(content, missing=missing) == [
        "2: receivers.grpc.tls.client_ca_file: /ca: No such file or directory; "
        "name a file in PEM that can be read",
        "2: receivers.grpc.tls.key_file: /key: Permission denied; "
        "name a file in PEM that can be read",
        "3: destinations.spans.tls.ca_file: /ca: No such file or directory; "
        "name a file in PEM that can be read",
    ]


WARNED = {
    "receivers: {grpc: {endpoint: '0.0.0.0:4317', token: s3cret}}": (
        "receivers.grpc.token: comes in the clear to 0.0.0.0; give it tls"
    ),
    "telemetry: {endpoint: 'gateway:8889', token: s3cret}": (
        "telemetry.token: comes in the clear to gateway; give it tls"
    ),
}


@pytest.mark.parametrize(("line", "words"), WARNED.items(), ids=WARNED)
def test_a_token_in_the_clear_is_a_warning(line: str, words: str) -> None:
    (warning,) = configured(f"{INLINE}{line}\n").warnings
    assert str(warning) == words


@pytest.mark.parametrize("secret", ["token: s3cret", "headers: {authorization: s3cret}"])
def test_a_token_that_leaves_the_machine_in_the_clear_is_a_warning(secret: str) -> None:
    def warnings(endpoint: str) -> list[str]:
        content = f"destinations: {{spans: {{endpoint: '{endpoint}', {secret}}}}}"
        return [str(warning) for warning in configured(content).warnings]

    key = secret.partition(":")[0]
    assert warnings("backend:1") == [
        f"destinations.spans.{key}: goes to backend in the clear; write https://, or give it tls"
    ]
    assert warnings("127.0.0.1:1") == warnings("localhost:1") == warnings("https://backend") == []
