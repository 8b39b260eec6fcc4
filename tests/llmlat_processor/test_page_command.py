"""`--html OUT` of `llmlat show` and `llmlat watch`: what is written where, and what is said."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from llmlat_processor.cli import main
from llmlat_processor.commands.page import save, told
from llmlat_processor.commands.watch import watch
from llmlat_processor.pipeline import process
from tests.llmlat_processor.adviser import TRACE_ID, adviser_spans, span
from tests.llmlat_processor.otlp_lines import otlp_line
from tests.llmlat_processor.test_watch import Receiver

OTHER_TRACE = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """A file with two traces."""
    path = tmp_path / "traces.jsonl"
    other = span(1, 0, "other root", 0, 100, trace_id=OTHER_TRACE)
    path.write_text(f"{otlp_line(adviser_spans())}\n{otlp_line([other])}\n", encoding="utf-8")
    return str(path)


def test_all_traces_go_on_one_page_and_the_terminal_stays_empty(
    traces: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.html"
    target.write_text("what was there before")
    assert main(["show", traces, "--html", str(target)]) == 0
    html = target.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert [TRACE_ID.hex() in html, OTHER_TRACE.hex() in html] == [True, True]
    out, err = capsys.readouterr()
    assert out == ""
    size = f"{len(html.encode()) // 1000} kB"
    assert err == f"llmlat show: wrote {target} (2 traces, {size})\n"


def test_one_trace_is_chosen_and_its_what_if_is_set(traces: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    asked = ["--trace", "0af7", "--what-if", "queue=0.5", "--html", str(target)]
    assert main(["show", traces, *asked]) == 0
    html = target.read_text(encoding="utf-8")
    assert OTHER_TRACE.hex() not in html
    assert 'value="50" data-label="queue"' in html
    assert "<code>queue=0.5</code>" in html


def test_json_goes_on_standard_output_beside_the_page(
    traces: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", traces, "--json", "--html", str(tmp_path / "report.html")]) == 0
    ids = [json.loads(line)["trace_id"] for line in capsys.readouterr().out.splitlines()]
    assert ids == [TRACE_ID.hex(), OTHER_TRACE.hex()]


def test_the_page_may_go_to_standard_output(
    traces: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", traces, "--html", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("</html>")
    assert "wrote standard output (2 traces, " in err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = str(tmp_path / "absent" / "report.html")
    with pytest.raises(OSError, match=r"absent.*: No such file or directory"):
        save([told(process(adviser_spans()))], target, io.StringIO())


def test_watch_writes_the_last_trace_that_it_drew(tmp_path: Path) -> None:
    target, out = tmp_path / "report.html", io.StringIO()
    ends = {"limit": 1, "as_json": False, "out": out, "err": io.StringIO()}
    assert watch("127.0.0.1:0", Receiver(at_start=1).start, **ends, html=str(target)) == 0  # type: ignore[arg-type]
    assert TRACE_ID.hex() in target.read_text(encoding="utf-8")
    assert f"wrote {target} (1 trace, " in " ".join(out.getvalue().split())
