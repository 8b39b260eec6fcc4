"""The format of a report: what people read, and the lines that programs read."""

import json

import pytest

from bench.report import Goal, Report, Table


@pytest.mark.parametrize(
    ("goal", "line"),
    [
        (Goal("paths_wide_10k", 38.14, 40, "ms"), "goal paths_wide_10k 38.1ms 40ms met"),
        (Goal("paths_wide_10k", 40, 40, "ms"), "goal paths_wide_10k 40.0ms 40ms met"),
        (Goal("paths_wide_10k", 40.1, 40, "ms"), "goal paths_wide_10k 40.1ms 40ms short"),
        (Goal("chunk", 0.914, 2, "us"), "goal chunk 0.914us 2us met"),
        (Goal("chunk", -0.2, 2, "us"), "goal chunk -0.200us 2us met"),
        (Goal("rate", 79_999.4, 80_000, "/s", at_least=True), "goal rate 79999/s 80000/s short"),
        (Goal("rate", 81_000, 80_000, "/s", at_least=True), "goal rate 81000/s 80000/s met"),
        (Goal("rate", 1, 1_500_000, "/s", at_least=True), "goal rate 1.00/s 1500000/s short"),
    ],
)
def test_a_goal_is_one_line_of_five_words(goal, line):
    assert str(goal) == line


def test_a_table_aligns_its_columns():
    table = Table("CPU", ["trace", "spans", "ms"], [["wide", 100_000, 612.345], ["deep", 7, ""]])
    assert str(table).splitlines() == [
        "CPU",
        "  trace    spans     ms",
        "  wide   100,000  612.3",
        "  deep         7",
    ]


def test_a_report_ends_with_its_goals():
    report = Report("b", [Table("T", ["x"], [["1"]])], [Goal("one", 1, 2, "ms")])
    assert str(report).split("\n\n") == ["T\n  x\n  1", "goal one 1.00ms 2ms met"]


def test_a_report_as_json_says_which_goals_are_met():
    report = Report("b", [], [Goal("one", 1, 2, "ms"), Goal("two", 3, 2, "ms")])
    goals = json.loads(json.dumps(report.as_json()))["goals"]
    assert [(goal["name"], goal["met"]) for goal in goals] == [("one", True), ("two", False)]
