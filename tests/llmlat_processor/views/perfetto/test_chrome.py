"""Traces in Perfetto: what is drawn where, what is said of it, and what has no place."""

from __future__ import annotations

import pytest

from llmlat_processor.pipeline import process
from llmlat_processor.views.perfetto.chrome import FIRST_CONTENT, TTFT_PATH
from llmlat_processor.views.perfetto.events import microseconds
from llmlat_semconv.phases import Phase
from tests.llmlat_processor.adviser import ENGINE, MS, TRACE_ID, adviser_spans, phase, span
from tests.llmlat_processor.views.perfetto.chrome_format import (
    Drawn,
    check,
    instants,
    nanoseconds,
    processes,
    slices,
    written,
)

PATH = "critical path"
OTHER_TRACE = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736")
ENGINE_PROCESS = "vllm (clock gpu-1)"


def names_of(drawn: list[Drawn]) -> list[str]:
    return [one.name for one in drawn]


def thread_of(drawn: list[Drawn], name: str) -> str:
    (found,) = [one.thread for one in drawn if one.name == name]
    return found


def test_the_paths_are_above_the_services() -> None:
    file = written(process(adviser_spans()))

    check(file)
    assert processes(file) == [PATH, TTFT_PATH, "adviser", ENGINE_PROCESS]


def test_the_sections_of_a_path_add_up_to_it() -> None:
    explained = process(adviser_spans())
    file = written(explained)
    (root,) = explained.paths.roots

    for name, path in ((PATH, root.e2e), (TTFT_PATH, root.ttft)):
        assert path is not None
        drawn = slices(file, name)
        assert sum(one.duration_ns for one in drawn) == path.duration_ns
        assert [one.args["duration_ns"] for one in drawn] == [one.duration_ns for one in drawn]
        at_ns = 0
        for one in drawn:
            assert one.start_ns == one.args["start_ns"] == at_ns
            at_ns += one.duration_ns


def test_a_section_says_what_is_known_of_it() -> None:
    (queue, *_) = [
        one for one in slices(written(process(adviser_spans())), PATH) if "queue" in one.name
    ]

    assert queue.name == "queue vllm"
    assert queue.args == {
        "label": "queue",
        "service": "vllm",
        "operation": "engine chat",
        "span_id": f"{15:016x}",
        "evidence": "measured",
        "start_ns": 250 * MS,
        "duration_ns": 150 * MS,
    }


def test_a_tool_is_named() -> None:
    assert "tool get_orders" in names_of(slices(written(process(adviser_spans())), PATH))


def test_operations_have_their_phases_in_them_and_say_what_they_answer_for() -> None:
    drawn = slices(written(process(adviser_spans())), "adviser")

    (root,) = [one for one in drawn if one.name == "invoke_agent adviser"]
    (hidden,) = [one for one in drawn if one.name == "retrieval account"]
    (wait, _) = [one for one in drawn if one.name == "wait"]
    assert (root.start_ns, root.duration_ns) == (0, 2000 * MS)
    assert "parent_id" not in root.args
    assert (hidden.args["slack_ns"], hidden.args["hidden_ns"]) == (100 * MS, 100 * MS)
    assert hidden.args["parent_id"] == f"{1:016x}"
    assert (wait.thread, wait.start_ns, wait.duration_ns) == (root.thread, 250 * MS, 370 * MS)


def test_what_ran_beside_another_has_a_thread_of_its_own() -> None:
    drawn = slices(written(process(adviser_spans())), "adviser")

    assert thread_of(drawn, "retrieval orders") == thread_of(drawn, "invoke_agent adviser")
    assert thread_of(drawn, "retrieval account") != thread_of(drawn, "retrieval orders")


def test_an_operation_with_another_clock_stands_only_where_the_path_put_it() -> None:
    """Its own stamps are 7 s later, and would lie past the end of the trace."""
    file = written(process(adviser_spans()))
    drawn = slices(file, ENGINE_PROCESS)

    assert names_of(drawn) == [
        "queue (engine chat)",
        "prefill (engine chat)",
        "decode (engine chat)",
    ]
    assert max(one.start_ns + one.duration_ns for one in slices(file)) == 2000 * MS


def test_an_operation_without_a_place_is_counted() -> None:
    unknown = span(50, 3, "query", 9000, 9001, ENGINE)
    file = written(process([*adviser_spans(), unknown]))

    assert "query" not in " ".join(names_of(slices(file)))
    assert file["otherData"]["roots"][0]["operations_without_a_place"] == 1


def test_the_first_useful_content_is_an_instant_on_both_paths() -> None:
    found = [
        one for one in instants(written(process(adviser_spans()))) if one.name == FIRST_CONTENT
    ]

    assert [(one.process, one.start_ns) for one in found] == [
        (PATH, 620 * MS),
        (TTFT_PATH, 620 * MS),
    ]


def test_a_finding_is_an_instant_on_its_witnesses() -> None:
    late = span(40, 2, "late", 210, 260)
    file = written(process([*adviser_spans(), late]))

    found = [one for one in instants(file) if one.name == "outlived_parent"]
    assert found
    assert {one.process for one in found} == {"adviser"}
    assert f"{40:016x}" in {one.args["of"] for one in found}


def test_a_finding_without_a_place_is_told_beside_the_time_line() -> None:
    file = written(process([*adviser_spans(), span(40, 1, "backwards", 30, 20)]))

    assert "negative_duration" not in names_of(instants(file))
    told = {one["kind"]: one["amount_ns"] for one in file["otherData"]["roots"][0]["findings"]}
    assert told["negative_duration"] == -10 * MS


def test_phases_that_do_not_nest_stand_beside_their_operation() -> None:
    spans = [
        span(1, 0, "root", 0, 100),
        phase(2, 1, Phase.PREPARE, 0, 60),
        phase(3, 1, Phase.SEND, 50, 90),
        phase(4, 1, Phase.WAIT, 90, 130),
    ]
    file = written(process(spans))

    check(file)
    assert len(slices(file, "adviser")) == 4


def test_a_child_that_runs_across_phases_does_not_hide_them() -> None:
    spans = [
        span(1, 0, "root", 0, 100),
        phase(2, 1, Phase.SEND, 10, 40),
        phase(3, 1, Phase.WAIT, 40, 90),
        span(4, 1, "transport", 5, 95),
    ]
    drawn = slices(written(process(spans)), "adviser")

    assert thread_of(drawn, "send") == thread_of(drawn, "wait") == thread_of(drawn, "root")
    assert thread_of(drawn, "transport") != thread_of(drawn, "root")


def test_what_begins_before_the_root_moves_all_of_it() -> None:
    file = written(process([span(1, 0, "root", 10, 100), span(2, 1, "early", 0, 50)]))

    check(file)
    starts = {one.name: one.start_ns for one in slices(file, "adviser")}
    assert starts == {"root": 10 * MS, "early": 0}
    assert slices(file, PATH)[0].start_ns == 10 * MS
    assert file["otherData"]["roots"][0]["root_start_in_file_ns"] == 10 * MS


def test_several_traces_are_told_apart() -> None:
    other = process([span(1, 0, "other", 500, 600, trace_id=OTHER_TRACE)])
    file = written(process(adviser_spans()), other)

    check(file)
    assert processes(file)[-2:] == [f"{PATH} · other 4bf92f35", "adviser · other 4bf92f35"]
    assert processes(file)[0] == f"{PATH} · invoke_agent adviser {TRACE_ID.hex()[:8]}"
    (drawn,) = slices(file, "adviser · other 4bf92f35")
    assert drawn.start_ns == 0  # each from its own start


def test_no_trace_is_a_file_without_events() -> None:
    assert written()["traceEvents"] == []


@pytest.mark.parametrize(
    "value_ns", [0, 1, 999, 1_000, 1_001, 123_456_789, 10**15 + 1, 8 * 10**15 + 7]
)
def test_nanoseconds_survive_being_microseconds(value_ns: int) -> None:
    assert nanoseconds(microseconds(value_ns)) == value_ns
