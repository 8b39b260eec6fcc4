"""OTEL_EXPORTER_OTLP_* variables: what they say where the file does not; the file goes first."""

from __future__ import annotations

from pathlib import Path

from llmlat_processor.settings import ClientTls, Compression, Destination, Protocol
from tests.llmlat_processor.config.reading import HOME, INLINE, deployment, said

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
ALL = {
    ENDPOINT: "https://all.example:4318/base/",
    "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20s3cret, x-tenant = acme,",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
    "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca",
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/cert",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/key",
}


def spans(content: str, environ: dict[str, str]) -> Destination:
    made = deployment(content, environ).spans
    assert made is not None
    return made


def test_variables_say_it_all_where_the_file_is_silent() -> None:
    made = spans("mode: inline", ALL)

    assert made.endpoint == "https://all.example:4318/base"
    assert made.protocol is Protocol.HTTP
    assert made.headers == {"authorization": "Bearer s3cret", "x-tenant": "acme"}
    assert made.compression is Compression.GZIP
    assert made.delivery.deadline_s == 2.5
    assert made.tls == ClientTls(Path("/ca"), Path("/cert"), Path("/key"))


def test_what_the_file_says_goes_first_key_by_key() -> None:
    content = """
        destinations:
          spans:
            endpoint: https://here
            protocol: grpc
            headers: {x: y}
            timeout: 1s
            tls: {ca_file: /other}
    """
    made = spans(content, ALL)

    assert (made.endpoint, made.protocol) == ("https://here:443", Protocol.GRPC)
    assert made.headers == {"x": "y"}
    assert made.delivery.deadline_s == 1
    assert made.tls == ClientTls(Path("/other"))
    assert made.compression is Compression.GZIP


def test_keys_are_shown_only_at_the_place_that_they_were_given_for() -> None:
    made = spans("destinations: {spans: {endpoint: https://here}}", ALL)

    assert made.headers == {}


def test_a_variable_of_one_signal_goes_before_that_of_all() -> None:
    environ = {
        **ALL,
        TRACES: "https://traces.example/v1/traces",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1",
        METRICS: "https://metrics.example:1/x/v1/metrics/",
    }
    made = deployment("destinations: {derived: {}, metrics: {}}", environ)

    assert made.spans is not None
    assert made.derived is not None
    assert made.metering.destination is not None
    assert made.spans == made.derived
    assert (made.spans.endpoint, made.spans.delivery.deadline_s) == (
        "https://traces.example:443",
        0.001,
    )
    assert made.metering.destination.endpoint == "https://metrics.example:1/x"


def test_an_empty_variable_says_nothing() -> None:
    assert len(said("mode: inline", {ENDPOINT: ""})) == 1
    assert spans(INLINE, {"OTEL_EXPORTER_OTLP_TIMEOUT": ""}).delivery.deadline_s == 10


def test_nothing_is_sent_to_a_place_that_the_file_does_not_have() -> None:
    made = deployment(INLINE, {ENDPOINT: "http://a:1", METRICS: "http://b:1"})

    assert (made.derived, made.metering.destination) == (None, None)


def test_a_tap_takes_its_destination_from_them() -> None:
    made = deployment("mode: tap", {ENDPOINT: "http://a:1"})

    assert made.spans is None
    assert made.derived == Destination("http://a:1")


def test_a_token_of_the_file_takes_the_place_of_an_authorization() -> None:
    made = spans("destinations: {spans: {token: mine}}", ALL)

    assert (made.token, dict(made.headers)) == ("mine", {"x-tenant": "acme"})


def test_certificates_are_for_destinations_over_tls_only() -> None:
    assert spans(INLINE, {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca"}).tls is None


def test_where_apps_send_to_is_mostly_this_very_processor() -> None:
    (problem,) = said("mode: inline", {ENDPOINT: "http://localhost:4317"})

    assert "would go round in a circle" in problem
    assert problem.endswith("; OTEL_EXPORTER_OTLP_ENDPOINT says so")


def test_what_they_say_wrong_is_told_with_their_names_and_without_values() -> None:
    environ = {
        ENDPOINT: "http://me:s3cret@a:1",
        "OTEL_EXPORTER_OTLP_HEADERS": "s3cret\n",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "s3cret",
    }
    problems = said("mode: inline", environ)

    assert len(problems) == 3
    assert "the value of OTEL_EXPORTER_OTLP_ENDPOINT holds a user or a password" in problems[0]
    assert "the value of OTEL_EXPORTER_OTLP_HEADERS is not name=value" in problems[1]
    assert "the value of OTEL_EXPORTER_OTLP_TIMEOUT is not a duration" in problems[2]
    assert "s3cret" not in "".join(problems)


def test_other_variables_change_nothing() -> None:
    assert deployment(INLINE, {"OTEL_SERVICE_NAME": "x"}) == deployment(INLINE, HOME)
