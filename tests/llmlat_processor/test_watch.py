"""`llmlat watch`: what it prints, when it ends, and with which exit code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence

import pytest

from llmlat_processor.commands.watch import watch
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.pipeline import process
from tests.llmlat_processor.adviser import TRACE_ID, adviser_spans

OnTrace = Callable[[ExplainedTrace], None]


class Receiver:
    """Hands on some traces as it starts, others as it stops; may be interrupted in between."""

    def __init__(
        self, at_start: int = 0, at_stop: int = 0, interrupts: Sequence[type[BaseException]] = ()
    ) -> None:
        self.address = "127.0.0.1:4317"
        self.at_start, self.at_stop, self.interrupts = at_start, at_stop, list(interrupts)
        self.is_stopped = False

    def start(self, listen: str, on_trace: OnTrace) -> Receiver:
        self.on_trace = on_trace
        self._hand_on(self.at_start)
        return self

    def books(self) -> str:
        if self.interrupts:
            raise self.interrupts.pop()
        return "the books"

    def stop(self) -> None:
        self.is_stopped = True
        self._hand_on(self.at_stop)

    def _hand_on(self, count: int) -> None:
        for _ in range(count):
            self.on_trace(process(adviser_spans()))


class Flushed(io.StringIO):
    """A stream that knows how much of it a reader would have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


class Gone(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def watched(
    receiver: Receiver, *, limit: int | None = None, as_json: bool = False
) -> tuple[int, Flushed, Flushed]:
    out, err = Flushed(), Flushed()
    code = watch("127.0.0.1:0", receiver.start, limit=limit, as_json=as_json, out=out, err=err)
    return code, out, err


def test_says_what_to_set_in_the_app_before_anything_comes() -> None:
    _, out, _ = watched(Receiver(at_start=1), limit=1)

    head, _, _ = out.getvalue().partition("trace ")
    assert "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317" in head
    assert "import llmlat_otel.auto" in head


def test_ends_after_enough_traces_with_the_books_balanced() -> None:
    receiver = Receiver(at_start=3)
    code, out, err = watched(receiver, limit=2)

    assert (code, err.getvalue()) == (0, "")
    assert out.getvalue().count(f"trace {TRACE_ID.hex()}") == 2
    assert out.getvalue().endswith("the books\n")
    assert receiver.is_stopped


def test_an_interrupt_is_an_orderly_end_that_shows_what_was_held() -> None:
    receiver = Receiver(at_start=1, at_stop=1, interrupts=[KeyboardInterrupt])
    code, out, _ = watched(receiver)

    assert code == 0
    assert receiver.is_stopped
    assert out.getvalue().count(f"trace {TRACE_ID.hex()}") == 2
    assert out.getvalue().endswith("the books\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_reader_that_has_left_ends_the_receiving_too(as_json: bool) -> None:
    """Else its threads would keep the process for ever."""
    receiver, gone = Receiver(at_start=1), Gone()
    with pytest.raises(BrokenPipeError):
        watch("", receiver.start, limit=None, as_json=as_json, out=gone, err=io.StringIO())

    assert receiver.is_stopped


def test_what_was_held_does_not_exceed_the_limit() -> None:
    _, out, _ = watched(Receiver(at_start=1, at_stop=5), limit=1)

    assert out.getvalue().count(f"trace {TRACE_ID.hex()}") == 1


def test_a_line_of_json_for_each_trace_and_all_else_beside_it() -> None:
    code, out, err = watched(Receiver(at_start=2), limit=2, as_json=True)

    assert code == 0
    assert [json.loads(line)["trace_id"] for line in out.getvalue().splitlines()] == [
        TRACE_ID.hex()
    ] * 2
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in err.getvalue()
    assert err.getvalue().endswith("the books\n")


def test_a_reader_sees_everything_at_once() -> None:
    """A parent process reads the pipe: nothing may wait in a buffer."""
    for as_json in (True, False):
        _, out, err = watched(Receiver(at_start=1), limit=1, as_json=as_json)
        assert out.seen == out.getvalue()
        assert err.seen == err.getvalue()


def test_an_address_that_is_taken_is_exit_code_1() -> None:
    def taken(listen: str, on_trace: OnTrace) -> Receiver:
        raise OSError(98, f"cannot listen on {listen}; choose another port")

    out, err = io.StringIO(), io.StringIO()
    code = watch("127.0.0.1:1", taken, limit=None, as_json=False, out=out, err=err)

    assert (code, out.getvalue()) == (1, "")
    assert err.getvalue() == "llmlat watch: cannot listen on 127.0.0.1:1; choose another port\n"


def test_an_address_that_is_none_is_exit_code_2() -> None:
    def confused(listen: str, on_trace: OnTrace) -> Receiver:
        raise ValueError(f"{listen!r} is not an address")

    out, err = io.StringIO(), io.StringIO()
    code = watch("nonsense", confused, limit=None, as_json=False, out=out, err=err)

    assert (code, err.getvalue()) == (2, "llmlat watch: 'nonsense' is not an address\n")
