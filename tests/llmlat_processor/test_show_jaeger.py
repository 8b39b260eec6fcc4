"""`llmlat show` of a trace that a Jaeger holds, and of one that goes to Perfetto."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmlat_processor import cli, service
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.show import Request, show
from llmlat_processor.files import load
from llmlat_processor.jaeger_address import Address
from llmlat_processor.pipeline import process
from llmlat_processor.views.document import document
from llmlat_processor.views.perfetto import chrome_trace
from tests.llmlat_processor.adviser import TRACE_ID, adviser_spans
from tests.llmlat_processor.jaeger_answers import jaeger_answer
from tests.llmlat_processor.otlp_lines import otlp_line

ADDRESS = f"jaeger://localhost:16686/{TRACE_ID.hex()}"
OLD_V3 = b'{"result": {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "CvdlGR=="}]}]}]}}'


class Jaeger:
    """Gives its answers one by one, and remembers for what."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = answers
        self.asked: list[Address] = []
        self.given = 0

    def __call__(self, address: Address) -> Iterator[bytes]:
        self.asked.append(address)
        for answer in self.answers:
            self.given += 1
            if isinstance(answer, Exception):
                raise answer
            yield answer


def shown(jaeger: Jaeger, *files: str, **options: Any) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    request = Request(
        files, "", [], as_json=options.pop("as_json", True), everything=False, **options
    )
    code = show(request, out, Progress(err, lambda: 0.0), jaeger)
    return code, out.getvalue(), err.getvalue()


def test_a_trace_is_shown_as_the_first_answer_has_it() -> None:
    answer = f'{{"result": {otlp_line(adviser_spans())}}}'.encode()
    jaeger = Jaeger(answer, b"never asked for")

    code, out, err = shown(jaeger, ADDRESS)

    assert (code, err) == (0, "")
    assert json.loads(out)["roots"] == document(process(adviser_spans()))["roots"]
    assert jaeger.asked == [Address("http://localhost:16686", TRACE_ID.hex())]
    assert jaeger.given == 1


@pytest.mark.parametrize("first", [OLD_V3, b"<html>", b'{"result": {"resourceSpans": []}}'])
def test_what_cannot_be_used_is_passed_over_for_the_next(first: bytes) -> None:
    code, out, err = shown(Jaeger(first, jaeger_answer(adviser_spans()).encode()), ADDRESS)

    assert (code, err) == (0, "")
    assert json.loads(out)["roots"] == document(process(adviser_spans()))["roots"]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([OSError("localhost:16686 has no such trace")], "has no such trace"),
        ([b"{}"], "resourceSpans: missing"),
        ([OLD_V3], "holds no span that can be read"),
        ([], "holds no span that can be read"),
    ],
)
def test_without_a_trace_it_is_told_why(answers: list[Any], told: str) -> None:
    code, out, err = shown(Jaeger(*answers), ADDRESS)

    assert (code, out) == (1, "")
    assert f"llmlat show: {ADDRESS}: " in err
    assert told in err


def test_an_address_that_is_none_of_a_trace_is_told() -> None:
    jaeger = Jaeger()

    code, _, err = shown(jaeger, "http://localhost:16686/search")

    assert (code, jaeger.asked) == (1, [])
    assert "http://localhost:16686/search: no trace id" in err


def test_nobody_is_asked_unless_somebody_can() -> None:
    out, err = io.StringIO(), io.StringIO()
    request = Request([ADDRESS], "", [], as_json=True, everything=False)

    assert show(request, out, Progress(err, lambda: 0.0)) == 1
    assert "nobody here can ask http://localhost:16686" in err.getvalue()


def test_the_command_line_asks_for_real(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service, "fetch", Jaeger(jaeger_answer(adviser_spans()).encode()))

    assert cli.main(["show", ADDRESS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trace_id"] == TRACE_ID.hex()


# ── Perfetto ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def traces(tmp_path: Path) -> str:
    path = tmp_path / "traces.jsonl"
    path.write_text(otlp_line(adviser_spans()) + "\n", encoding="utf-8")
    return str(path)


def test_a_file_for_perfetto_is_written_instead_of_pictures(traces: str, tmp_path: Path) -> None:
    target = tmp_path / "t.json"

    code, out, err = shown(Jaeger(), traces, as_json=False, perfetto=str(target))

    assert (code, out) == (0, "")
    assert err == f"llmlat show: wrote {target}; drop it on https://ui.perfetto.dev\n"
    read = json.loads(target.read_text(encoding="utf-8"))
    assert read == json.loads(json.dumps(chrome_trace([process(load(traces).spans)])))


def test_a_dash_is_standard_output(traces: str) -> None:
    code, out, err = shown(Jaeger(), traces, as_json=False, perfetto="-")

    assert (code, err) == (0, "llmlat show: wrote standard output\n")
    assert json.loads(out)["traceEvents"]


def test_a_file_that_cannot_be_written_is_named(traces: str, tmp_path: Path) -> None:
    target = tmp_path / "absent" / "t.json"

    with pytest.raises(OSError, match=f"^{target}: No such file or directory"):
        shown(Jaeger(), traces, as_json=False, perfetto=str(target))
