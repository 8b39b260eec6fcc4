"""`llmlat processor`: what it says, when it ends, and with which exit code."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from llmlat_processor import cli
from llmlat_processor.commands.processor import forward
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.settings import (
    INLINE,
    ClientTls,
    Deployment,
    Destination,
    Explained,
    JournalSettings,
    Listener,
    Mode,
    Views,
)
from llmlat_processor.window import SECOND_NS
from llmlat_semconv.values import FindingKind


class Processor:
    """Runs until it is asked for the third time whether it has ended, or is interrupted."""

    def __init__(
        self,
        *,
        is_connected: bool = True,
        interrupts: Sequence[type[BaseException]] = (KeyboardInterrupt,),
        fault: Exception | None = None,
    ) -> None:
        self.addresses = ("127.0.0.1:4317",)
        self.telemetry_address = ""
        self.destination = "127.0.0.1:4319"
        self._is_connected = is_connected
        self._interrupts = list(interrupts)
        self._fault = fault
        self.is_stopped = False
        self.findings: Sequence[FindingCount] = ()

    def is_connected(self, timeout_s: float) -> bool:
        return self._is_connected

    def has_ended(self, timeout_s: float) -> bool:
        if self._interrupts:
            raise self._interrupts.pop()
        return True

    def books(self) -> str:
        return "the books"

    def found(self) -> Sequence[FindingCount]:
        return self.findings

    def stop(self) -> None:
        self.is_stopped = True
        if self._fault is not None:
            raise self._fault


class FullDisk(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def forwarded(processor: Processor) -> tuple[int, list[str]]:
    err = io.StringIO()
    code = forward(lambda: processor, err)
    return code, err.getvalue().splitlines()


def test_it_says_where_it_stands_and_ends_with_the_books() -> None:
    processor = Processor()

    assert forwarded(processor) == (
        0,
        [
            "Receiving OTLP on 127.0.0.1:4317, sending to 127.0.0.1:4319.",
            "Sending what is held ...",
            "the books",
        ],
    )
    assert processor.is_stopped


def test_a_log_that_cannot_be_written_ends_nothing() -> None:
    """On a full disk, or when whoever read along has left."""
    processor = Processor()

    assert forward(lambda: processor, FullDisk()) == 0
    assert processor.is_stopped


def test_what_was_found_in_traces_is_told_at_the_end_kind_by_kind() -> None:
    processor = Processor()
    processor.findings = [
        FindingCount(FindingKind.NEGATIVE_TRANSIT, "app", "v\x1b[31mllm", 3),
        FindingCount(FindingKind.CLOCK_STEP, "", "app", 1),
    ]

    assert forwarded(processor)[1][-2:] == [
        "found 3 x negative_transit, app -> v?[31mllm",
        "found 1 x clock_step, nobody -> app",
    ]


def test_of_many_kinds_and_pairs_the_rest_is_counted() -> None:
    processor = Processor()
    processor.findings = [
        FindingCount(FindingKind.STREAM_HELD, "app", f"model-{number}", 1) for number in range(30)
    ]

    assert forwarded(processor)[1][-1] == "found 10 more kinds or pairs of services"


def test_a_destination_that_is_not_there_yet_is_said_and_no_reason_to_end() -> None:
    _, said = forwarded(Processor(is_connected=False))

    assert said[1] == "Nobody answers at 127.0.0.1:4319 yet; spans wait until it does."
    assert said[-1] == "the books"


def test_a_fault_that_ends_it_is_raised_after_the_books() -> None:
    err = io.StringIO()
    with pytest.raises(ZeroDivisionError):
        forward(lambda: Processor(interrupts=(), fault=ZeroDivisionError()), err)

    assert err.getvalue().endswith("the books\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [(OSError(98, "cannot listen on it"), 1), (ValueError("cannot listen on it"), 2)],
)
def test_where_it_cannot_start_it_says_why(error: Exception, code: int) -> None:
    def start() -> Processor:
        raise error

    err = io.StringIO()

    assert forward(start, err) == code
    assert err.getvalue() == "llmlat processor: cannot listen on it\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of whoever runs it, with no variables that speak of it."""
    for name in [name for name in os.environ if name.startswith(("OTEL_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cli, "_stay", lambda: None)
    return tmp_path


def asked(monkeypatch: pytest.MonkeyPatch, *options: str) -> Deployment:
    """What the service is asked for."""
    calls: list[Deployment] = []

    def start(deployment: Deployment) -> Processor:
        calls.append(deployment)
        return Processor()

    monkeypatch.setattr(cli, "_start", start)
    assert cli.main(["processor", *options]) == 0
    return calls[0]


def test_unless_told_otherwise_it_listens_where_apps_send_to(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = asked(monkeypatch, "--export", "here:1")

    assert made == Deployment(
        grpc=Listener("127.0.0.1:4317"),
        spans=Destination("here:1"),
        settings=replace(INLINE, views=Views(explained=Explained.GENAI)),
        journal=JournalSettings(),
        state=home / ".local" / "state" / "llmlat-processor",
    )


def test_options_reach_the_service(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = asked(
        monkeypatch,
        *("--listen", "127.0.0.1:0", "--export", "127.0.0.1:4319", "--lane", "off"),
        *("--jaeger-warnings", "--idle", "0.5", "--hold-max", "10"),
    )
    settings = made.settings

    assert (made.grpc, made.spans) == (Listener("127.0.0.1:0"), Destination("127.0.0.1:4319"))
    assert settings.views == Views(lane=False, jaeger_warnings=True, explained=Explained.GENAI)
    assert settings.window.idle_ns == SECOND_NS // 2
    assert settings.window.hold_max_ns == 10 * SECOND_NS


def test_options_say_how_it_stands_among_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = asked(
        monkeypatch,
        *("--listen", ":1", "--http", ":2", "--export", "https://there", "--telemetry", ":3"),
        *("--workers", "4", "--journal", "off", "--state", "kept", "--explain", "all"),
    )
    addresses = [each.address for each in (made.grpc, made.http, made.telemetry) if each]

    assert addresses == ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    assert made.spans == Destination("https://there:443", tls=ClientTls())
    assert (made.workers, made.journal, made.state) == (4, None, Path("kept"))
    assert made.settings.views.explained is Explained.ALL


def test_a_tap_sends_what_is_derived_and_keeps_no_journal(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = asked(monkeypatch, "--tap", "--export", "there:1")

    assert (made.mode, made.spans, made.derived) == (Mode.TAP, None, Destination("there:1"))
    assert made.journal is None


def test_without_a_home_the_journal_needs_a_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HOME")

    assert cli.main(["processor", "--export", "there:1"]) == 2
    assert "name a folder with --state" in capsys.readouterr().err
    assert asked(monkeypatch, "--export", "there:1", "--state", "kept").state == Path("kept")


@pytest.mark.parametrize("option", ["--listen", "--http", "--telemetry", "--export"])
def test_what_is_no_address_is_told(
    option: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["processor", "--export", "there:1", option, "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("llmlat processor: 'nowhere' is not host:port")


def test_a_config_file_says_it_all(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "processor.yaml"
    file.write_text(
        "destinations: {spans: {endpoint: 'there:1', token: '${env:TOKEN}'}}\nworkers: 2",
        encoding="utf-8",
    )
    monkeypatch.setenv("TOKEN", "s3cret")

    made = asked(monkeypatch, "--config", str(file))

    assert made.spans == Destination("there:1", token="s3cret")
    assert made.workers == 2
    said = capsys.readouterr().err
    assert f"{file}:1: destinations.spans.token: goes to there in the clear" in said
    assert "s3cret" not in said


def test_a_config_file_with_problems_is_told_and_nothing_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "processor.yaml"
    file.write_text("mode: tab\nworkers: 0\n", encoding="utf-8")

    def start(deployment: Deployment) -> Processor:
        raise AssertionError(deployment)

    monkeypatch.setattr(cli, "_start", start)

    assert cli.main(["processor", "--config", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"{file}:1: mode: 'tab' is none of inline, tap\n"
        f"{file}:2: workers: '0' is not a whole number of at least 1\n"
    )


def test_a_config_file_and_options_are_told_apart(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["processor", "--config", "p.yaml", "--hold-max", "3", "--tap"])

    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "--config says it all: write what --tap, --hold-max says into the file" in said


def test_what_a_running_one_is_at_is_asked_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked_for: list[tuple[str, str]] = []

    def answer(token: str, url: str) -> bytes:
        asked_for.append((token, url))
        raise ConnectionRefusedError(111, "nobody is there")

    monkeypatch.setattr(cli, "_fetch_from_processor", answer)

    assert cli.main(["processor", "status", "--endpoint", "there:1", "--token", "t"]) == 1
    assert asked_for == [("t", "http://there:1/status")]
    assert "nobody is there" in capsys.readouterr().err


WRONG = [
    [],
    ["--export"],
    ["--export", "a:1", "--lane", "maybe"],
    ["--export", "a:1", "--idle", "-1"],
    ["--export", "a:1", "--idle", "nan"],
    ["--export", "a:1", "--hold-max", "soon"],
    ["--export", "a:1", "--hold-max", "1e300"],
    ["--export", "a:1", "--workers", "0"],
    ["--export", "a:1", "--journal", "maybe"],
    ["--export", "a:1", "--tap", "--journal", "on"],
    ["--export", "a:1", "--explain", "some"],
    ["--config"],
    ["--config", "p.yaml", "--export", "a:1"],
    ["status", "--endpoint"],
]


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_wrong_usage_is_exit_code_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["processor", *options])

    assert ended.value.code == 2
    assert "usage: llmlat processor" in capsys.readouterr().err


def test_its_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["processor", "--help"])

    assert ended.value.code == 0
    assert "examples:\n  llmlat processor --export" in capsys.readouterr().out
