"""`llmlat clocks`: what is told of clocks over time, what is kept, and what is said of the rest."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from llmlat_processor import cli
from llmlat_processor.clock_history import from_bytes
from llmlat_processor.commands.clocks import Request, clocks
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.saving import STDOUT
from llmlat_processor.model import CLIENT, SERVER, Span
from llmlat_semconv import attributes as names
from tests.llmlat_processor.adviser import MS, START_NS, resource, span
from tests.llmlat_processor.calls_over_time import (
    APP_CLOCK,
    APP_UP_NS,
    ENGINE_CLOCK,
    monotonic,
    one_call,
    ten_minutes,
)
from tests.llmlat_processor.otlp_lines import otlp_line

PICTURES = Path(__file__).parent / "pictures"
S = 1_000 * MS
RPC = {names.RPC_SYSTEM: "grpc"}


def written(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run(*files: str, ascii_only: bool = False, **options: Any) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out = io.TextIOWrapper(io.BytesIO(), "ascii" if ascii_only else "utf-8")
    err = io.StringIO()
    code = clocks(Request(files, **options), out, Progress(err, lambda: 0.0))
    out.seek(0)
    return code, out.read(), err.getvalue()


def document(*files: str, **options: Any) -> Any:
    code, out, err = run(*files, as_json=True, **options)
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture
def steady(tmp_path: Path) -> str:
    return written(tmp_path / "steady.jsonl", *ten_minutes())


@pytest.fixture
def stepped(tmp_path: Path) -> str:
    return written(tmp_path / "stepped.jsonl", *ten_minutes(step_ms=40))


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def ahead_ns(at_ns: int) -> int:
    """The engine's clock less the app's in `ten_minutes`, at an instant of the app's."""
    return 5 * S + (at_ns - START_NS) * 50 // 10**6


def test_each_window_has_an_interval_that_holds_the_truth(steady: str) -> None:
    told = document(steady)

    (pair,) = told["pairs"]
    # The engine's domain sorts first, so that offsets are of the app's clock against it.
    assert [pair[side]["services"] for side in ("first", "second")] == [["vllm"], ["adviser"]]
    assert [pair[side]["host"] for side in ("first", "second")] == ["gpu-1", "laptop"]
    assert len(pair["stretches"]) >= 5
    for stretch in pair["stretches"]:
        true_ns = -ahead_ns(stretch["at_ns"] - 5 * S)
        assert stretch["offset_ns"]["low"] <= true_ns <= stretch["offset_ns"]["high"]
        assert stretch["offset_ns"]["high"] - stretch["offset_ns"]["low"] < 15 * MS
        assert stretch["drift_ppb"]["low"] <= -50_000 <= stretch["drift_ppb"]["high"]
    assert pair["steps"] == []
    assert sum(stretch["messages"] for stretch in pair["stretches"]) == 240
    assert told["messages"] == {"learned": 240}
    assert told["reason"] is None
    assert (told["traces"], told["left_out"]) == (120, 0)


def test_a_step_is_told_with_amount_instants_and_witnesses(stepped: str) -> None:
    (pair,) = document(stepped)["pairs"]

    (step,) = pair["steps"]
    # The app's clock fell behind by 40 ms. Both ways and the tail of an answer are unknown.
    assert -40 * MS <= step["amount_ns"] <= -25 * MS
    # By the engine's clock, which is 5 s ahead: between the calls at 355 and at 360 s.
    assert START_NS + 360 * S < step["after_ns"] < step["by_ns"] < START_NS + 366 * S
    assert {int(each["trace_id"], 16) for each in step["before"]} <= set(range(1, 73))
    assert {int(each["trace_id"], 16) for each in step["since"]} == {73, 74}
    assert {stretch["epoch"] for stretch in pair["stretches"]} == {0, 1}


@pytest.mark.parametrize("ascii_only", [False, True])
def test_picture(stepped: str, ascii_only: bool) -> None:
    code, out, err = run(stepped, ascii_only=ascii_only)

    name = "clocks_over_time_80_ascii.txt" if ascii_only else "clocks_over_time_80.txt"
    assert (code, err) == (0, "")
    assert out == (PICTURES / name).read_text(encoding="utf-8")
    assert out.isascii() == ascii_only


def test_of_monotonic_clocks_wall_clocks_are_told_and_their_own_beside(tmp_path: Path) -> None:
    file = written(tmp_path / "mono.jsonl", *map(monotonic, ten_minutes()))
    (pair,) = document(file)["pairs"]

    assert [pair[side]["domain"] for side in ("first", "second")] == [APP_CLOCK, ENGINE_CLOCK]
    assert [pair[side]["is_monotonic"] for side in ("first", "second")] == [True, True]
    for stretch in pair["stretches"]:
        at_ns = stretch["wall"]["at_ns"]
        assert at_ns - START_NS == stretch["at_ns"] - APP_UP_NS
        low, high = (stretch["wall"]["offset_ns"][end] for end in ("low", "high"))
        assert low <= ahead_ns(at_ns) <= high
        own = stretch["offset_ns"]
        assert (own["low"] - low, own["high"] - high) == (-APP_UP_NS, -APP_UP_NS)
    _, out, _ = run(file)
    assert "vllm (gpu-1) ahead of (+) or behind (-) adviser (laptop)" in out
    assert "2025-11-29 13:0" in out
    assert "own clocks -3,59" in out


def test_findings_are_counted_by_kind_and_pair_of_services(steady: str) -> None:
    (row,) = document(steady)["findings"]

    assert row == {
        "kind": "apparent_negative_network",
        "caller": "adviser",
        "callee": "vllm",
        "total": 120,
    }


def test_no_line_is_wider_than_the_screen(stepped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = run(stepped)

    assert max(map(cell_len, out.splitlines())) <= 60


def test_long_accounts_are_cut_and_all_of_it_is_there_when_asked_for(steady: str) -> None:
    _, few, _ = run(steady, window_ns=20 * S)
    _, all_of_it, _ = run(steady, window_ns=20 * S, everything=True)

    assert "more earlier windows of time" in few
    assert "more earlier" not in all_of_it
    assert all_of_it.count(" wide") > few.count(" wide") == 12


def test_a_state_goes_on_from_run_to_run(tmp_path: Path, steady: str) -> None:
    lines = ten_minutes()
    state = tmp_path / "clocks.state"
    halves = [
        written(tmp_path / f"{name}.jsonl", *part)
        for name, part in (("first", lines[:60]), ("second", lines[60:]))
    ]
    document(halves[0], state=str(state))
    second = document(halves[1], state=str(state))
    assert not list(tmp_path.glob("*.new"))

    whole = tmp_path / "whole.state"
    document(steady, state=str(whole))
    assert state.read_bytes() == whole.read_bytes()
    assert second["pairs"][0]["stretches"][-1] == document(steady)["pairs"][0]["stretches"][-1]


def test_what_was_learned_before_is_told_of_though_nobody_says_whose_clocks(
    tmp_path: Path, steady: str
) -> None:
    state = str(tmp_path / "clocks.state")
    document(steady, state=state)
    local = written(tmp_path / "local.jsonl", otlp_line([span(1, 0, "root", 0, 10)]))
    code, out, err = run(local, state=state)

    assert (code, err) == (0, "")
    assert "which they are is not said in these files" in out
    assert "at 1,764," in out


def test_a_file_that_is_no_state_is_left_alone(tmp_path: Path, steady: str) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("a novel", encoding="utf-8")
    code, out, err = run(steady, state=str(precious))

    assert code == 1
    assert "adviser (laptop) ahead of (+) or behind (-) vllm (gpu-1)" in out
    assert err == (
        f"llmlat clocks: {precious}: it is no clock history; begun without it, and it stays as "
        "it is\n"
    )
    assert precious.read_text(encoding="utf-8") == "a novel"


def test_a_state_of_other_windows_is_left_alone(tmp_path: Path, steady: str) -> None:
    state = tmp_path / "clocks.state"
    document(steady, state=str(state))
    before = state.read_bytes()
    code, _, err = run(steady, state=str(state), window_ns=30 * S)

    assert code == 1
    assert "it was made with windows of 120 s" in err
    assert state.read_bytes() == before


def test_a_state_that_cannot_be_written_is_told_after_all_is_shown(
    tmp_path: Path, steady: str
) -> None:
    state = tmp_path / "absent" / "clocks.state"
    code, out, err = run(steady, state=str(state))

    assert code == 1
    assert "ahead of" in out
    assert err == (
        f"llmlat clocks: {state}: No such file or directory; what was learned is not kept\n"
    )
    code, _, err = run(steady, state=str(tmp_path))
    assert code == 1
    assert "Is a directory; begun without it" in err


def test_one_clock_alone_is_nothing_to_compare(tmp_path: Path) -> None:
    local = written(tmp_path / "local.jsonl", otlp_line([span(1, 0, "root", 0, 10)]))
    code, out, err = run(local)

    assert (code, out) == (1, "")
    assert "one clock stamped all that was read ('host.id=laptop')" in err
    assert f"{names.LLMLAT_CLOCK_DOMAIN_ID} or {names.HOST_ID}" in err


@pytest.mark.parametrize(("line", "traces"), [(otlp_line([span(1, 0, "r", 0, 9)]), 1), ("x", 0)])
def test_for_programs_there_is_a_document_that_says_why_it_holds_no_pair(
    tmp_path: Path, line: str, traces: int
) -> None:
    state = tmp_path / "clocks.state"
    file = written(tmp_path / "local.jsonl", line)
    code, out, err = run(file, as_json=True, state=str(state))
    told = json.loads(out)

    assert code == 1
    assert (told["pairs"], told["traces"]) == ([], traces)
    assert err.endswith(f"llmlat clocks: {told['reason']}\n")
    assert not state.exists()


def test_the_same_trace_in_two_files_is_one(tmp_path: Path, steady: str) -> None:
    caller, callee = one_call(1, 0, 5_000)
    halves = [
        written(tmp_path / f"{name}.jsonl", otlp_line([one]))
        for name, one in (("caller", caller), ("callee", callee))
    ]
    told = document(*halves)

    assert (told["traces"], told["messages"]) == (1, {"learned": 2})
    assert document(steady, steady) == document(steady)


def test_two_clocks_that_never_met_are_told_apart_from_one(tmp_path: Path) -> None:
    caller, callee = one_call(1, 0, 0)
    other = otlp_line([span(1, 0, "serve", 0, 9, callee.resource, trace_id=bytes(15) + b"2")])
    code, _, err = run(written(tmp_path / "two.jsonl", otlp_line([caller]), other))

    assert code == 1
    assert "2 clocks, but no call between two of them" in err


def test_a_file_without_a_span_is_exit_code_1(tmp_path: Path) -> None:
    code, out, err = run(written(tmp_path / "noise.txt", "hello"))

    assert (code, out) == (1, "")
    assert "noise.txt" in err
    assert "no span could be read" in err


def test_a_file_that_holds_nothing_does_not_hide_the_others(tmp_path: Path, steady: str) -> None:
    empty = written(tmp_path / "empty.json", '{"resourceSpans": []}')
    code, out, err = run(empty, steady)

    assert (code, err) == (0, f"llmlat clocks: {empty}: it holds no span\n")
    assert "ahead of" in out


def test_damage_is_named_and_the_rest_is_used(tmp_path: Path) -> None:
    lines = ten_minutes()
    file = written(tmp_path / "broken.jsonl", lines[0], '{"resourceSpans": [{]}', lines[1])
    code, out, err = run(file)

    assert code == 0
    assert "4 messages of 2 traces" in out
    assert "broken.jsonl:2" in err
    assert "the rest of it is used" in err


def test_traces_are_learned_from_in_the_order_of_time(tmp_path: Path, stepped: str) -> None:
    lines = ten_minutes(step_ms=40)
    turned = written(tmp_path / "turned.jsonl", *reversed(lines))

    assert document(turned) == document(stepped)


def test_the_command_line_asks_for_it(
    steady: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["clocks", steady, "--window", "60", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["window_ns"] == 60 * S
    assert cli.main(["clocks", steady]) == 0
    assert "\x1b" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        cli.main(["clocks", steady, "--window", "0"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit):
        cli.main(["clocks", "--help"])
    assert "examples:\n  llmlat clocks" in capsys.readouterr().out


def test_standard_input_is_read(
    steady: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(steady).read_bytes())))
    assert cli.main(["clocks", STDOUT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traces"] == 120


#   laptop  ─┬───────┬───     the replica says no host: each call may have met another one
#   replica  └ ?     └ ?
def unknown_replica() -> list[Span]:
    where = resource("replica", "")
    where.attributes, where.domain, where.weak = {names.SERVICE_NAME: "replica"}, "hash", True
    spans = [span(1, 0, "root", 0, 1_000)]
    for number, start_ms in ((10, 100), (20, 500)):
        spans += [
            span(number, 1, "call", start_ms, start_ms + 100, kind=CLIENT, attributes=RPC),
            span(number + 1, number, "serve", start_ms, start_ms + 90, where, kind=SERVER),
        ]
    return spans


def test_a_clock_that_is_met_by_one_call_alone_is_not_compared_over_time(
    tmp_path: Path, steady: str
) -> None:
    file = written(tmp_path / "replica.jsonl", otlp_line(unknown_replica()))
    code, out, err = run(file)
    assert (code, out) == (1, "")
    assert "nothing says which calls met the same clock" in err
    assert names.HOST_ID in err

    _, out, _ = run(file, steady)
    assert out.count("ahead of (+) or behind (-)") == 1
    assert "121 traces" in out
    assert "messages of clocks of one call" in out


def test_the_state_that_is_kept_is_a_history(tmp_path: Path, steady: str) -> None:
    state = tmp_path / "clocks.state"
    document(steady, state=str(state))

    assert from_bytes(state.read_bytes()).pairs() == [("host.id=gpu-1", "host.id=laptop")]


def test_the_picture_and_the_json_in_the_documents_are_what_is_written(tmp_path: Path) -> None:
    told = (Path(__file__).parents[2] / "docs" / "clocks.md").read_text(encoding="utf-8")
    mono = written(tmp_path / "mono.jsonl", *map(monotonic, ten_minutes()))
    window = told.partition("```json\n")[2].partition("```")[0]

    assert (PICTURES / "clocks_over_time_80.txt").read_text(encoding="utf-8") in told
    assert json.loads(window) == document(mono)["pairs"][0]["stretches"][0]


def test_traces_come_from_a_jaeger_as_well() -> None:
    address = f"jaeger://127.0.0.1:16686/{'0' * 31}1"
    answer = otlp_line(one_call(1, 0, 5_000)).encode()
    out, err = io.StringIO(), io.StringIO()
    request = Request([address, "jaeger://nowhere"], as_json=True)
    code = clocks(request, out, Progress(err, lambda: 0.0), lambda _: [b"no", b"{}", answer])

    assert code == 0
    assert json.loads(out.getvalue())["messages"] == {"learned": 2}
    assert err.getvalue().startswith("llmlat clocks: ")
    assert "jaeger://nowhere" in err.getvalue()
    code, _, said = run(address)
    assert code == 1
    assert f"{address}: nobody here can ask" in said
