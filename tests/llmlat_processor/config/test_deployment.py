"""A config file and its deployment: every key has its effect, and every problem is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmlat_processor.settings import (
    GIB,
    INLINE,
    KIB,
    ClientTls,
    Compression,
    Delivery,
    Deployment,
    Destination,
    Durability,
    Explained,
    JournalSettings,
    Listener,
    Metering,
    Mode,
    Protocol,
    ServerTls,
    Views,
)
from llmlat_processor.window import MIB, SECOND_NS
from tests.llmlat_processor.config import reading
from tests.llmlat_processor.config.reading import configured, deployment, said

ALL = """\
mode: inline
receivers:
  grpc:
    endpoint: 0.0.0.0:14317
    tls: {cert_file: /pki/cert, key_file: /pki/key, client_ca_file: /pki/ca}
    token: sesame
  http: {endpoint: "[::1]:14318", token: "123"}
  max_message_size: 1MiB
destinations:
  spans:
    endpoint: https://spans.example/otlp
    protocol: http
    tls: {ca_file: /pki/ca, cert_file: /pki/cert, key_file: /pki/key}
    headers: {X-Tenant: acme, x-shard: 7}
    token: open
    compression: gzip
    timeout: 1s
    max_request_size: 5KiB
    sending_queue: {size: 6KiB}
    retry: {initial_interval: 7ms, max_interval: 8s, max_elapsed_time: 9m}
    drain: 11s
  derived: {endpoint: "lanes:4317", tls: {}}
  metrics: {endpoint: "http://metrics:4318/", protocol: http, compression: none, interval: 12s}
window:
  idle: 0
  grace: 13s
  hold_max: 14s
  tombstones: 15s
  skeletons: 18h
  max_spans_per_trace: 16
  max_trace_size: 19MiB
  max_traces: 21
  max_held: 17MiB
  max_remembered: 22MiB
  max_waiting: 18MiB
views: {lane: off, annotations: off, jaeger_warnings: yes, explain: all}
journal: {enabled: true, max_size: 19MiB, durability: full}
state: {directory: /var/lib/llmlat}
telemetry: {endpoint: "127.0.0.1:18889", tls: {cert_file: /c, key_file: /k}, token: told}
metrics: {max_series: 20}
workers: 21
"""


LIMITS = replace(
    INLINE.window,
    idle_ns=0,
    grace_ns=13 * SECOND_NS,
    hold_max_ns=14 * SECOND_NS,
    tombstone_ns=15 * SECOND_NS,
    skeleton_ns=18 * 3600 * SECOND_NS,
    trace_spans=16,
    trace_bytes=19 * MIB,
    traces=21,
    held_bytes=17 * MIB,
    revision_bytes=22 * MIB,
)


def test_every_key_has_its_effect() -> None:
    made = deployment(ALL)
    spans = Destination(
        endpoint="https://spans.example:443/otlp",
        protocol=Protocol.HTTP,
        tls=ClientTls(Path("/pki/ca"), Path("/pki/cert"), Path("/pki/key")),
        headers={"x-tenant": "acme", "x-shard": "7"},
        token="open",
        compression=Compression.GZIP,
        delivery=Delivery(5 * KIB, 6 * KIB, 1, 0.007, 8, 540, 11),
    )
    metrics = Destination("http://metrics:4318", Protocol.HTTP, compression=Compression.NONE)

    assert made == Deployment(
        mode=Mode.INLINE,
        grpc=Listener(
            "0.0.0.0:14317",
            ServerTls(Path("/pki/cert"), Path("/pki/key"), Path("/pki/ca")),
            "sesame",
        ),
        http=Listener("[::1]:14318", None, "123"),
        spans=spans,
        derived=Destination("lanes:4317", tls=ClientTls()),
        settings=replace(
            INLINE,
            window=LIMITS,
            max_message_bytes=MIB,
            waiting_bytes=18 * MIB,
            views=Views(
                lane=False, annotations=False, jaeger_warnings=True, explained=Explained.ALL
            ),
        ),
        journal=JournalSettings(19 * MIB, Durability.FULL),
        state=Path("/var/lib/llmlat"),
        metering=Metering(metrics, 12, 20),
        telemetry=Listener("127.0.0.1:18889", ServerTls(Path("/c"), Path("/k")), "told"),
        workers=21,
    )


def test_what_is_not_said_is_as_the_settings_are() -> None:
    assert deployment(reading.INLINE) == Deployment(
        spans=Destination("backend:4317"),
        settings=replace(INLINE, views=Views(explained=Explained.GENAI)),
        journal=JournalSettings(GIB),
        state=Path("/op/.local/state/llmlat-processor"),
        telemetry=Listener("127.0.0.1:8889"),
    )


def test_a_tap_sends_what_is_derived_and_keeps_no_journal() -> None:
    made = deployment(reading.TAP)

    assert (made.mode, made.spans, made.journal) == (Mode.TAP, None, None)
    assert made.derived == Destination("backend:4317")


@pytest.mark.parametrize("key", ["window", "views", "state", "receivers", "journal", "workers"])
def test_a_key_without_a_value_is_as_good_as_none(key: str) -> None:
    assert deployment(f"{reading.INLINE}{key}:\n") == deployment(reading.INLINE)


def test_receivers_are_those_that_are_named() -> None:
    def received(receivers: str) -> tuple[str, str]:
        made = deployment(f"{reading.INLINE}receivers: {receivers}")
        return (
            made.grpc.address if made.grpc else "",
            made.http.address if made.http else "",
        )

    assert received("{max_message_size: 1MiB}") == ("127.0.0.1:4317", "")
    assert received("{grpc: {}}") == ("127.0.0.1:4317", "")
    assert received("{http: {}}") == ("", "127.0.0.1:4318")
    assert received("{http: {}, grpc: null}") == ("", "127.0.0.1:4318")
    assert received("{http: {endpoint: ':1'}, grpc: {}}") == ("127.0.0.1:4317", "127.0.0.1:1")


def test_telemetry_can_be_turned_off() -> None:
    assert deployment(f"{reading.INLINE}telemetry: null").telemetry is None


def test_state_is_where_the_system_has_it() -> None:
    made = deployment(reading.INLINE, {"XDG_STATE_HOME": "/state"})
    assert made.state == Path("/state/llmlat-processor")
    made = deployment(reading.INLINE, {"XDG_STATE_HOME": "not/absolute"})
    assert made.state == Path("/op/.local/state/llmlat-processor")


def test_without_a_home_a_journal_needs_a_folder_and_a_tap_does_not() -> None:
    nowhere = {"HOME": ""}

    assert said(reading.INLINE, nowhere) == [
        "1: state.directory: is missing, and there is no home to keep a journal in; name a folder"
    ]
    assert deployment(reading.TAP, nowhere).state is None
    assert deployment(f"{reading.INLINE}journal: {{enabled: no}}", nowhere).state is None


WRONG = {
    "mode: both": "is none of inline, tap",
    "mode: [inline]": "one of inline, tap is expected, and this is a list",
    "window: 2s": "a mapping is expected here; its keys are idle, grace, hold_max",
    "window: [idle]": "a mapping is expected here",
    "window: {idle: soon}": "'soon' is not a duration; write a number and its unit, like 10s",
    "window: {idle: {s: 2}}": "a duration is expected, and this is a mapping",
    "window: {hold_max: 0s}": "'0s' is too little",
    "window: {max_held: lots}": "'lots' is not a size",
    "window: {max_spans_per_trace: 1.5}": "'1.5' is not a whole number of at least 1",
    "views: {lane: maybe}": "'maybe' is neither on nor off",
    "views: {explain: some}": "'some' is none of genai, all",
    "workers: 0": "'0' is not a whole number of at least 1",
    "workers: -1": "'-1' is not a whole number of at least 1",
    "workers: many": "'many' is not a whole number of at least 1",
    "state: {directory: ~/state}": "begins with ~, which is not read here; write ${env:HOME}",
    "state: {directory: ''}": "is no path",
    "journal: {durability: best}": "'best' is none of normal, full",
    "receivers: {grpc: {endpoint: here}}": "'here' is not host:port, like 127.0.0.1:4317",
    "receivers: {grpc: {endpoint: 'http://a:1'}}": "is a URL; to listen, write host:port",
    "receivers: {grpc: {endpoint: '::1:4317'}}": "without brackets; write it like [::1]:4317",
    "receivers: {grpc: {endpoint: 'a:99999'}}": "'a:99999' is not host:port",
    "receivers: {max_message_size: 0}": "'0' is too little",
    "telemetry: {endpoint: 8889}": "'8889' is not host:port",
}


@pytest.mark.parametrize(("line", "words"), WRONG.items(), ids=WRONG)
def test_a_wrong_value_is_told_with_what_would_be_right(line: str, words: str) -> None:
    (problem,) = said(f"{reading.INLINE}{line}\n")

    assert problem.startswith("2: " + line.partition(":")[0])
    assert words in problem


DESTINATIONS = {
    "endpoint: ftp://a:1": "is neither host:port nor a URL that begins with http:// or https://",
    "endpoint: http://me:s3cret@a:1": "holds a user or a password; give those in headers",
    "endpoint: a:0": "has port 0, where nobody can be reached",
    "endpoint: a:1/path": "has a path but no scheme",
    "endpoint: http://a:1/x?s3cret": "is more than a place and a path",
    "endpoint: http://a/x": "has a path, and gRPC has none",
    "endpoint: http://[::1": "is not host:port",
    "{endpoint: a:1, protocol: http/json}": "'http/json' is none of grpc, http",
    "{endpoint: a:1, headers: [s3cret]}": "a mapping of names to values is expected",
    '{endpoint: a:1, headers: {x: "s3cret\\n"}}': "the value of 'x' is none that a header carries",
    "{endpoint: a:1, headers: {x: {y: s3cret}}}": "the value of 'x' is none that a header carries",
    "{endpoint: a:1, headers: {'x y': s3cret}}": "'x y' is not the name of a header",
    '{endpoint: a:1, token: "s3cret\\n"}': "it holds a line break",
    "{endpoint: a:1, token: {s3cret: 1}}": "text is expected, and this is a mapping",
    "{endpoint: a:1, compression: zstd}": "'zstd' is none of auto, gzip, none",
    "{endpoint: a:1, timeout: 0}": "'0' is too little",
    "{endpoint: a:1, tls: yes}": "its keys are ca_file, cert_file, key_file",
}


@pytest.mark.parametrize(("block", "words"), DESTINATIONS.items(), ids=DESTINATIONS)
def test_a_wrong_destination_is_told_without_a_secret(block: str, words: str) -> None:
    (problem,) = said(f"destinations:\n  spans:\n    {block}\n")

    assert problem.startswith("3: destinations.spans.")
    assert words in problem
    assert "s3cret" not in problem


UNKNOWN = {
    "wokers: 1": "did you mean workers?",
    "Window: {}": "did you mean window?",
    "window: {hold-max: 1s}": "did you mean hold_max?",
    "window: {quite-another: 1s}": "there are idle, grace, hold_max",
    "receivers: {protocols: {grpc: {}}}": "grpc and http stand in receivers themselves",
    "processors: {}": "there are mode, receivers",
    "journal: {path: }": "there are enabled, max_size, durability",
}


@pytest.mark.parametrize(("line", "words"), UNKNOWN.items(), ids=UNKNOWN)
def test_an_unknown_key_is_told_with_the_nearest_known(line: str, words: str) -> None:
    (problem,) = said(f"{reading.INLINE}{line}\n")

    assert "no such key; " in problem
    assert words in problem


def test_keys_of_the_collector_are_told_by_their_names_here() -> None:
    content = """
        destinations:
          spans:
            endpoint: a:1
            tls: {insecure: true, insecure_skip_verify: true}
            retry_on_failure: {enabled: true}
            sending_queue: {queue_size: 10}
    """
    problems = said(content)

    assert [problem.partition("; ")[2] for problem in problems] == [
        "write http:// in the endpoint to send in the clear",
        "certificates are always verified; name who signed it in ca_file",
        "it is called retry here",
        "it is called size here, and is in bytes",
    ]


def test_all_problems_are_told_at_once_each_with_its_line() -> None:
    content = """\
        mode: tap
        receivers: {grpc: {endpoint: here}}
        destinations:
          derived:
            endpoint: https://lanes
            tls: {cert_file: /gone}
            timeout: 10 bananas
        window:
          idle: 2m
        journal:
          enabled: on
        wokers: 3
        state: {directory: "${env:STATE}"}
    """
    assert [
        problem.partition("; ")[0] for problem in said(content, missing={"/gone": "not there"})
    ] == [
        "2: receivers.grpc.endpoint: 'here' is not host:port, like 127.0.0.1:4317",
        "6: destinations.derived.tls.cert_file: /gone: not there",
        "6: destinations.derived.tls.key_file: is missing",
        "7: destinations.derived.timeout: '10 bananas' is not a duration",
        "9: window.idle: 120s are longer than hold_max, 60s: no trace would ever be whole",
        "11: journal.enabled: a tap keeps no journal, since the spans are safe elsewhere",
        "12: wokers: no such key",
        "13: state.directory: the environment variable STATE is not set",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "destination: {spans: {endpoint: a:1}}",
        "destinations: {span: {endpoint: a:1}}",
        "destinations: {spans: a:1}",
        "destinations: {spans: {endpoit: a:1}}",
        "mode: tab\ndestinations: {derived: {endpoint: a:1}}",
        "mode: ${env:MODE}\ndestinations: {derived: {endpoint: a:1}}",
        "destinations: a:1",
    ],
)
def test_one_mistake_is_one_problem(content: str) -> None:
    assert len(said(content)) == 1


def test_nothing_secret_is_in_what_a_deployment_says_of_itself() -> None:
    made = configured(
        """
        receivers: {grpc: {token: s3cret}}
        destinations: {spans: {endpoint: a:1, token: s3cret, headers: {x: s3cret}}}
        telemetry: {token: s3cret}
        """
    )
    assert "s3cret" not in repr(made)
