"""`llmlat show`: which traces are shown, how what-ifs are answered, what is said of damage."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from llmlat_processor.commands import page as page_module
from llmlat_processor.commands import show as show_module
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.show import Request, show
from llmlat_processor.commands.what_if import meant, parse
from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.schedule import Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.views.wording import CAVEAT
from llmlat_semconv.phases import Phase
from tests.llmlat_processor.adviser import MS, TRACE_ID, adviser_spans, span
from tests.llmlat_processor.otlp_lines import otlp_line

OTHER_TRACE = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """A file with two traces, each on a line."""
    other = span(1, 0, "other root", 0, 100, trace_id=OTHER_TRACE)
    return written(tmp_path / "traces.jsonl", otlp_line(adviser_spans()), otlp_line([other]))


def no_time() -> float:
    return 0.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def shown(
    *files: str,
    trace: str = "",
    what_ifs: tuple[str, ...] = (),
    as_json: bool = False,
    everything: bool = False,
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    request = Request(files, trace, [parse(text) for text in what_ifs], as_json, everything)
    return show(request, out, Progress(err, no_time)), out.getvalue(), err.getvalue()


def documents(*files: str, **options: Any) -> list[Any]:
    code, out, err = shown(*files, as_json=True, **options)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def test_every_trace_of_a_file_is_drawn(traces: str) -> None:
    code, out, err = shown(traces)

    assert (code, err) == (0, "")
    assert f"trace {TRACE_ID.hex()}\ninvoke_agent adviser" in out
    assert f"trace {OTHER_TRACE.hex()}\nother root" in out


def test_a_trace_is_chosen_by_the_start_of_its_id(traces: str) -> None:
    (chosen,) = documents(traces, trace="4bf9")

    assert chosen["trace_id"] == OTHER_TRACE.hex()


def test_an_unknown_trace_is_an_error_that_lists_the_known(traces: str) -> None:
    code, out, err = shown(traces, trace="ffff")

    assert (code, out) == (1, "")
    assert f"no trace id starts with 'ffff'; there are {TRACE_ID.hex()}" in err


def test_spans_of_one_trace_in_several_files_are_one_trace(tmp_path: Path) -> None:
    spans = adviser_spans()
    whole = written(tmp_path / "whole.jsonl", otlp_line(spans))
    half = written(tmp_path / "half.jsonl", otlp_line(spans[::2]))
    rest = written(tmp_path / "rest.jsonl", otlp_line(spans[1::2]))

    assert documents(half, rest) == documents(rest, half) == documents(whole)


def test_damage_is_named_and_the_rest_is_shown(tmp_path: Path, traces: str) -> None:
    good = Path(traces).read_text(encoding="utf-8").splitlines()
    broken = written(tmp_path / "broken.jsonl", good[0], '{"resourceSpans": [{]}', good[1])

    code, out, err = shown(broken)

    assert code == 0
    assert "broken.jsonl:2" in err
    assert "the rest of it is used" in err
    assert "other root" in out


def test_a_file_without_a_span_is_named(tmp_path: Path, traces: str) -> None:
    empty = written(tmp_path / "empty.json", '{"resourceSpans": []}')

    code, _, err = shown(empty, traces)

    assert (code, err) == (0, f"llmlat show: {empty}: it holds no span\n")


def test_a_width_of_nothing_is_not_believed(traces: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")

    _, out, _ = shown(traces)

    assert "other root" in out


def test_long_work_is_told_on_a_terminal_and_leaves_nothing_there(
    tmp_path: Path, traces: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "500")
    terminal = Terminal()
    request = Request([traces, str(tmp_path / "absent")], "", [], as_json=True, everything=False)

    with (tmp_path / "kept").open("w", encoding="utf-8") as kept:
        assert show(request, kept, Progress(terminal, no_time)) == 0

    drawn = terminal.getvalue()
    assert f"\r\x1b[Kreading {traces}" in drawn
    assert "\r\x1b[Kexplaining trace 1 of 2" in drawn
    assert "\r\x1b[Kllmlat show: " in drawn
    assert drawn.endswith("\r\x1b[K")


def test_beside_its_own_pictures_no_work_is_told(traces: str) -> None:
    terminal = Terminal()

    request = Request([traces], "", [], as_json=False, everything=False)
    assert show(request, Terminal(), Progress(terminal, no_time)) == 0

    assert "explaining" not in terminal.getvalue()


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, traces: str) -> None:
    code, out, err = shown(str(tmp_path / "absent.json"), traces)

    assert code == 0
    assert "absent.json: No such file or directory" in err
    assert "other root" in out


def test_nothing_to_show_is_exit_code_1(tmp_path: Path) -> None:
    code, out, err = shown(written(tmp_path / "noise.txt", "hello"))

    assert (code, out) == (1, "")
    assert "noise.txt" in err
    assert "no span could be read" in err


def test_document_has_both_paths_to_the_nanosecond(traces: str) -> None:
    explained = documents(traces, trace=TRACE_ID.hex())[0]
    (root,) = explained["roots"]

    assert root["e2e"]["duration_ns"] == 2000 * MS
    assert root["ttft"]["duration_ns"] == 620 * MS
    for path in (root["e2e"], root["ttft"]):
        at_ns = 0
        for section in path["sections"]:
            assert section["start_ns"] == at_ns
            at_ns += section["duration_ns"]
        assert at_ns == path["duration_ns"] == sum(path["totals_ns"].values())
    assert root["operations"]["0000000000000003"] == {
        "slack_ns": 100 * MS,
        "hidden_ns": 100 * MS,
    }
    assert root["ledger"] == {
        "work_ns": 2020 * MS,
        "busy_ns": 1920 * MS,
        "overlapped_ns": 100 * MS,
        "retry_waste_ns": None,
    }


def test_document_is_the_documented_shape(traces: str) -> None:
    explained = documents(traces, trace=TRACE_ID.hex())[0]
    (root,) = explained["roots"]

    assert list(explained) == [
        "trace_id",
        "complete",
        "assumptions",
        "findings",
        "operations",
        "roots",
        "clocks",
        "first_contents",
    ]
    assert list(explained["assumptions"]) == ["tail_ns", "resolution_ns", "drift_ppm"]
    assert list(explained["clocks"]) == ["reference", "left_out", "domains"]
    assert list(root["e2e"]) == [
        "root_span_id",
        "duration_ns",
        "dominant",
        "totals_ns",
        "sections",
        "alternatives",
    ]
    assert list(root) == [
        "span_id",
        "name",
        "service",
        "duration_ns",
        "e2e",
        "ttft",
        "ttft_absence",
        "ledger",
        "operations",
    ]
    assert list(root["e2e"]["sections"][0]) == [
        "span_id",
        "service",
        "label",
        "start_ns",
        "duration_ns",
        "evidence",
    ]


def test_document_of_a_trace_without_content_says_why(traces: str) -> None:
    (root,) = documents(traces, trace="4bf9")[0]["roots"]

    assert (root["ttft"], root["ttft_absence"]) == (None, "no_inference")


def test_document_tells_findings(tmp_path: Path) -> None:
    spans = [span(1, 0, "root", 0, 100), span(40, 1, "backwards", 30, 20)]
    explained = documents(written(tmp_path / "t.jsonl", otlp_line(spans)))[0]

    assert [(f["kind"], f["of"], f["amount_ns"]) for f in explained["findings"]] == [
        ("negative_duration", f"{40:016x}", -10 * MS)
    ]


def test_a_what_if_is_answered_with_its_caveat(traces: str) -> None:
    asked = ("tool:get_orders=0.5", "tool=-100ms")
    code, out, err = shown(traces, trace=TRACE_ID.hex(), what_ifs=asked)

    assert (code, err) == (0, "")
    assert "tool:get_orders=0.5: saves 130 ms, 1.87 s instead of 2.00 s" in out
    assert "tool=-100ms: saves 100 ms, 1.90 s instead of 2.00 s" in out
    assert CAVEAT in " ".join(out.split())


def test_all_that_is_asked_of_a_trace_is_answered_from_schedules_that_are_made_once(
    traces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made anew for each question and root, 800 roots took over a minute."""
    made = []

    def counted(aligned: AlignedTrace) -> dict[Span, Schedule]:
        made.append(aligned.trace.trace_id)
        return schedules(aligned)

    for module in (show_module, page_module):
        monkeypatch.setattr(module, "schedules", counted)
    what_ifs = [parse(text) for text in ("tool=0.5", "decode=0.5")]
    target = str(tmp_path / "report.html")
    request = Request((traces,), "", what_ifs, False, False, html=target)
    show(request, io.StringIO(), Progress(io.StringIO(), no_time))
    assert len(made) == len(set(made)) > 1


def test_a_what_if_in_the_document(traces: str) -> None:
    explained = documents(traces, trace=TRACE_ID.hex(), what_ifs=("tool=0.5",))[0]

    assert explained["what_if"]["caveat"] == CAVEAT
    (answer,) = explained["what_if"]["answers"]
    assert answer["asked"] == "tool=0.5"
    assert (answer["saves_ns"], answer["duration_ns"]) == (130 * MS, 1870 * MS)
    assert answer["saves_low_ns"] <= answer["saves_ns"] <= answer["saves_high_ns"]


def test_a_what_if_that_no_trace_can_answer_is_exit_code_2(traces: str) -> None:
    code, out, err = shown(traces, trace="4bf9", what_ifs=("tool:get_orders=0.5",))

    assert code == 2
    assert "other root" in out
    assert "'tool:get_orders=0.5' matches no operation of this trace: other root" in err


def test_a_what_if_that_one_trace_can_answer_is_enough(traces: str) -> None:
    code, _, err = shown(traces, what_ifs=("tool:get_orders=0.5",))

    assert code == 0
    assert OTHER_TRACE.hex() in err


@pytest.mark.parametrize(
    ("text", "target", "change"),
    [
        ("queue=0.5", (Phase.QUEUE, "", ""), (0.5, None)),
        ("tool:get_orders=0", (Phase.TOOL, "get_orders", ""), (0, None)),
        ("tool:a=b@c=2", (Phase.TOOL, "a=b@c", ""), (2, None)),
        ("decode@6F1c=-720ms", (Phase.DECODE, "", "6f1c"), (None, -720 * MS)),
        ("@6f1c=+1.5s", (None, "", "6f1c"), (None, 1500 * MS)),
        ("send=-20us", (Phase.SEND, "", ""), (None, -20_000)),
        ("send=-20µs", (Phase.SEND, "", ""), (None, -20_000)),
        ("send=-7ns", (Phase.SEND, "", ""), (None, -7)),
    ],
)
def test_a_what_if_is_read(text: str, target: tuple[Any, ...], change: tuple[Any, ...]) -> None:
    read = parse(text)

    assert (read.phase, read.name, read.span_prefix) == target
    assert (read.factor, read.by_ns) == change


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("queue", "is not TARGET=CHANGE"),
        ("=0.5", "is not TARGET=CHANGE"),
        ("queue@xyz=1", "is not TARGET=CHANGE"),
        (":name=1", "names no phase and no span"),
        ("quueue=0.5", "'quueue' is no phase; the phases are prepare, pool_wait, connect"),
        ("queue=-0.5", "neither a factor of 0 to 1,000,000 nor an amount like -720ms"),
        ("queue=nan", "neither a factor"),
        ("queue=inf", "neither a factor"),
        ("queue=720ms", "neither a factor"),
        ("queue=", "neither a factor"),
        ("queue=1e308", "neither a factor"),
        ("queue=+99999999999s", "is longer than any trace"),
        (f"queue=+{'9' * 400}s", "is longer than any trace"),
    ],
)
def test_a_what_if_that_cannot_be_read_says_what_could(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tool:get_orders=1", 20),
        ("decode:engine chat=1", 15),
        ("@000000000000000f=1", 15),
        ("queue=1", None),
    ],
)
def test_a_what_if_means_one_operation_or_all(text: str, found: int | None) -> None:
    one: Span | None = meant(parse(text), process(adviser_spans()))

    assert (None if one is None else int.from_bytes(one.span_id, "big")) == found


def test_a_what_if_that_could_mean_several_names_them() -> None:
    with pytest.raises(ValueError, match=r"name one: @0{15}a \(chat gemma\), @0{14}1e"):
        meant(parse("decode:chat gemma=1"), process(adviser_spans()))
