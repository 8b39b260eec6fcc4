"""`llmlat processor status`: what it asks, what it prints, and with which exit code it ends."""

from __future__ import annotations

import io
import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from http.client import BadStatusLine
from typing import NamedTuple
from urllib.error import HTTPError, URLError

import pytest

from llmlat_processor.commands.status import TOKEN_VARIABLE, add_arguments, status
from llmlat_processor.model.status import Books, Status
from tests.llmlat_processor.metrics.samples import BOOKS, STATUS

URL = "http://127.0.0.1:8889/status"


class Said(NamedTuple):
    code: int
    out: str
    err: str
    urls: list[str]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def answering(told: Status) -> Callable[[str], bytes]:
    return lambda _: json.dumps(told.document()).encode()


def failing(error: Exception) -> Callable[[str], bytes]:
    def fetch(_: str) -> bytes:
        raise error

    return fetch


def asked(
    fetch: Callable[[str], bytes],
    *options: str,
    out: io.StringIO | None = None,
    pauses: int = 0,
) -> Said:
    """One run; a watch is interrupted after so many pauses."""
    parser = ArgumentParser()
    add_arguments(parser)
    urls: list[str] = []
    left = [None] * pauses

    def recorded(url: str) -> bytes:
        urls.append(url)
        return fetch(url)

    def pause(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()

    out, err = out or io.StringIO(), io.StringIO()
    code = status(parser.parse_args(options), recorded, out, err, pause)
    return Said(code, out.getvalue(), err.getvalue(), urls)


def test_a_person_sees_that_it_adds_up() -> None:
    said = asked(answering(STATUS))

    assert (said.code, said.err, said.urls) == (0, "", [URL])
    assert (
        said.out
        == """\
127.0.0.1:8889: inline, up 3 h 12 min, ready

  received                               1,200
  added                                    120
  -------------------------------------  -----
                                         1,320

  sent                                   1,300
  repeated                                   3
  consumed                                   0
  held                                       8
  to be sent                                 7
  dropped (rejected by the destination)      2
  -------------------------------------  -----
                                         1,320  the books balance

traces: 12 explained, 1 again with late spans
also: 4 as they came (late), 4 late, 20 from the journal, 5 damaged, 6 metrics requests
in memory: 2 traces of 1.2 MiB, 2.0 KiB of those that went on, 12 B waiting
journal: 12 batches of 1.0 MiB, healthy
to tempo:4317: 1,300 sent, 7 to be sent (4.0 KiB), 2 dropped
  last error: UNAVAILABLE: it is down
to jaeger:4317: 0 sent, 0 to be sent (0 B)
worker 0: 1,200 received, 12 traces, 8 held (1.2 MiB)
"""
    )


def test_books_that_do_not_balance_are_not_well() -> None:
    said = asked(answering(replace(STATUS, books=replace(BOOKS, sent=1_299))))

    assert said.code == 1
    assert "1,319  the books do not balance" in said.out


def test_what_takes_nothing_now_says_why_and_is_not_well() -> None:
    said = asked(answering(replace(STATUS, not_ready="the journal is full")))

    assert said.code == 1
    assert said.out.startswith("127.0.0.1:8889: inline, up 3 h 12 min, takes nothing now: the jour")


def test_no_journal_is_said_and_one_that_cannot_be_written_is_cried_out() -> None:
    assert "\njournal: none\n" in asked(answering(Status(Books()))).out
    assert STATUS.journal is not None
    broken = replace(STATUS, journal=replace(STATUS.journal, is_healthy=False))
    assert "\njournal: 12 batches of 1.0 MiB, CANNOT BE WRITTEN\n" in asked(answering(broken)).out


def test_words_from_the_wire_do_nothing_to_a_terminal() -> None:
    nasty = {"\x1b[2J": 1}
    books = replace(BOOKS, dropped={"\x1b[2Jx": 2}, as_they_came=nasty, other=nasty)
    sending = {"\x1b[2J": replace(STATUS.destinations["tempo:4317"], last_error="\x1b[2J\n")}
    said = asked(
        answering(
            replace(STATUS, books=books, destinations=sending, mode="\x1b[2J", not_ready="\x1b[2J")
        )
    )

    assert "\x1b" not in said.out
    assert "last error: ?[2J?\n" in said.out


def test_json_is_what_was_told() -> None:
    said = asked(answering(STATUS), "--json")

    assert Status.of(json.loads(said.out)) == STATUS
    assert said.out.count("\n") == 1
    assert asked(answering(replace(STATUS, not_ready="full")), "--json").code == 1


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("gateway:9", "http://gateway:9/status"),
        (":9", "http://127.0.0.1:9/status"),
        ("[::1]:9", "http://[::1]:9/status"),
        ("https://gateway/llmlat/", "https://gateway/llmlat/status"),
    ],
)
def test_an_endpoint_is_a_host_and_a_port_or_a_url(endpoint: str, url: str) -> None:
    assert asked(answering(STATUS), "--endpoint", endpoint).urls == [url]


@pytest.mark.parametrize("endpoint", ["gateway", "ftp://gateway:1", "a:b", "a:99999", "[::1", ""])
def test_what_is_no_endpoint_is_wrong_usage(endpoint: str) -> None:
    said = asked(answering(STATUS), "--endpoint", endpoint)

    assert (said.code, said.out, said.urls) == (2, "", [])
    assert said.err == (
        f"llmlat processor status: --endpoint {endpoint!r} is not a HOST:PORT or a URL\n"
    )


def refusal(code: int) -> HTTPError:
    return HTTPError(URL, code, "no", Message(), io.BytesIO(b""))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (URLError(ConnectionRefusedError(111, "Connection refused")), "(Connection refused)"),
        (TimeoutError("timed out"), "(timed out)"),
        (OSError(113, "No route to host"), "(No route to host)"),
        (refusal(401), f"127.0.0.1:8889 wants a token: set {TOKEN_VARIABLE}, or give --token"),
        (refusal(403), "wants a token"),
        (refusal(404), "answers with HTTP 404; is it the address of a processor's telemetry?"),
    ],
)
def test_where_nobody_tells_it_says_what_to_do(error: Exception, words: str) -> None:
    said = asked(failing(error))

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("llmlat processor status: ")
    assert words in said.err


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b'{"books": 3}', b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_status_is_said_to_be_none(body: bytes) -> None:
    said = asked(lambda _: body)

    assert (said.code, said.out) == (1, "")
    assert "127.0.0.1:8889 answers, but not with a status (" in said.err


def test_who_does_not_speak_http_tells_no_status() -> None:
    said = asked(failing(BadStatusLine("\x00\x00\x12\x04")))

    assert (said.code, said.out) == (1, "")
    assert "answers, but not with a status (" in said.err
    assert "\x00" not in said.err


def test_the_token_is_never_shown() -> None:
    said = asked(failing(refusal(401)), "--token", "s3cret")
    in_url = asked(failing(refusal(404)), "--endpoint", "http://me:s3cret@gateway:1")

    assert "s3cret" not in said.out + said.err + in_url.out + in_url.err


def test_the_token_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "s3cret")
    parser = ArgumentParser()
    add_arguments(parser)

    assert parser.parse_args([]).token == "s3cret"
    assert parser.parse_args(["--token", "other"]).token == "other"
    assert "s3cret" not in parser.format_help()


def test_a_watch_tells_it_again_and_again_until_it_is_interrupted() -> None:
    said = asked(answering(STATUS), "--watch", "--json", pauses=2)

    assert (said.code, len(said.urls)) == (0, 3)
    assert said.out.count("\n") == 3


def test_a_watch_outlives_a_processor_that_is_away() -> None:
    said = asked(failing(URLError("away")), "--watch", pauses=1)

    assert (said.code, len(said.urls)) == (0, 2)
    assert said.err.count("away") == 2


def test_on_a_terminal_a_watch_stays_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for fetch, words in (
        (answering(STATUS), "the books balance"),
        (failing(URLError("away")), "(away)"),
    ):
        said = asked(fetch, "--watch", out=Terminal(), pauses=1)
        assert said.out.count(words) >= 2
        assert "\x1b[2K" in said.out


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32m" in asked(answering(STATUS), out=Terminal()).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in asked(answering(STATUS), out=Terminal()).out
