"""`llmlat processor`: what it says, when it ends, and with which exit code."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from llmlat_processor import cli
from llmlat_processor.commands.processor import forward
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.settings import INLINE, Settings, Views
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
        self.address = "127.0.0.1:4317"
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


def asked(monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[str, str, Settings]:
    """What the service is asked for."""
    from llmlat_processor import service

    calls: list[tuple[str, str, Settings]] = []

    def start(listen: str, destination: str, *, settings: Settings) -> Processor:
        calls.append((listen, destination, settings))
        return Processor()

    monkeypatch.setattr(service, "forward", start)
    monkeypatch.setattr(cli, "_stay", lambda: None)
    assert cli.main(["processor", *options]) == 0
    return calls[0]


def test_unless_told_otherwise_it_listens_where_apps_send_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked(monkeypatch, "--export", "here:1") == ("127.0.0.1:4317", "here:1", INLINE)


def test_options_reach_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    listen, destination, settings = asked(
        monkeypatch,
        *("--listen", "127.0.0.1:0", "--export", "127.0.0.1:4319", "--lane", "off"),
        *("--jaeger-warnings", "--idle", "0.5", "--hold-max", "10"),
    )

    assert (listen, destination) == ("127.0.0.1:0", "127.0.0.1:4319")
    assert settings.views == Views(lane=False, jaeger_warnings=True)
    assert settings.window.idle_ns == SECOND_NS // 2
    assert settings.window.hold_max_ns == 10 * SECOND_NS
    assert settings.delivery == INLINE.delivery


WRONG = [
    [],
    ["--export"],
    ["--export", "a:1", "--lane", "maybe"],
    ["--export", "a:1", "--idle", "-1"],
    ["--export", "a:1", "--idle", "nan"],
    ["--export", "a:1", "--hold-max", "soon"],
    ["--export", "a:1", "--hold-max", "1e300"],
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
