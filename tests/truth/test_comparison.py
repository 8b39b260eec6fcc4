"""The comparison: errors and their limits, intervals with and without ends, findings, drift."""

from __future__ import annotations

import pytest

from llmlat_processor.model import Interval
from llmlat_semconv.values import FindingKind
from tests.truth.comparison import Attribution, Comparison, Findings, OffsetCheck, attributed
from tests.truth.drift import DriftCheck, drift_checks, rate_ppb
from tests.truth.report import BEGIN, END, Outcome, goals, markdown, put_into, tables
from tests.truth.scenarios import SCENARIOS, Scenario
from tests.truth.truth import Delay, HostClocks

MS = 1_000_000
S = 1_000_000_000
STEP = FindingKind.CLOCK_STEP
HELD = FindingKind.STREAM_HELD
NOTHING = Findings({}, {}, {})


@pytest.mark.parametrize(
    ("injected_ms", "limit_ms"), [(20, 2), (200, 2), (500, 5)], ids=["short", "equal", "long"]
)
def test_the_limit_is_two_milliseconds_or_a_hundredth(injected_ms, limit_ms):
    each = Attribution("queue", (Delay(injected_ms * MS),), (injected_ms * MS,))
    assert each.limit_ns == limit_ms * MS


def test_the_error_is_the_median_over_the_traces():
    injected = (Delay(100 * MS), Delay(110 * MS), Delay(120 * MS))
    each = Attribution("queue", injected, (101 * MS, 160 * MS, 119 * MS))
    assert each.errors_ns == [1 * MS, 50 * MS, -1 * MS]
    assert each.error_ns == 1 * MS
    assert each.share == 0.5


@pytest.mark.parametrize(
    ("low", "high", "inside", "width", "margin"),
    [
        (-5, 10, True, 15, 3),
        (7, 10, True, 3, 0),
        (8, 10, False, 2, -1),
        (-5, 6, False, 11, -1),
        (None, 10, True, None, None),
        (8, None, False, None, None),
    ],
    ids=["within", "at an end", "below", "above", "no lower end", "below, no upper end"],
)
def test_a_truth_is_inside_unless_an_end_excludes_it(low, high, inside, width, margin):
    check = OffsetCheck("engine", False, 7, Interval(low, high))
    assert (check.is_inside, check.width_ns, check.margin_ns) == (inside, width, margin)


def test_time_is_attributed_by_phase_and_by_hop():
    operations = [("a", "execute_tool search"), ("b", "chat emulated"), ("c", "chat")]
    sections = [
        ("a", "tools", "tool", 40),
        ("a", "app", "transit", 5),
        ("b", "app", "transit", 6),
        ("c", "gateway", "transit", 7),
        ("b", "app", "send", 1),
        ("c", "engine", "queue", 30),
    ]
    document = {
        "operations": [{"span_id": span, "name": name} for span, name in operations],
        "roots": [
            {
                "e2e": {
                    "sections": [
                        {"span_id": span, "service": service, "label": label, "duration_ns": size}
                        for span, service, label, size in sections
                    ]
                }
            }
        ],
        "findings": [{"kind": FindingKind.NEGATIVE_TRANSIT.value, "amount_ns": -9}],
    }
    assert attributed(Scenario("test", "of it"), document) == {
        "tool": 40,
        "queue": 30,
        "app to tools": 5,
        "app to gateway": 6,
        "gateway to engine": 7,
        "contradiction": 9,
    }


def test_a_gain_is_a_rate_of_the_clock_of_the_machine():
    clocks = HostClocks(0, [(0, 50 * S), (10 * S, 60 * S + 1 * MS)])
    assert rate_ppb(clocks, 0, 10 * S) == 100_000


@pytest.mark.parametrize(
    ("services", "low", "high"),
    [(("app", "engine"), 40_000, 160_000), (("engine", "app"), -160_000, -40_000)],
    ids=["the app first", "the engine first"],
)
def test_a_drift_is_the_engines_whichever_of_the_two_comes_first(services, low, high):
    first, second = ({"services": [service]} for service in services)
    others = {"first": {"services": ["app"]}, "second": {"services": ["tools"]}, "stretches": [{}]}
    stretches = [{"drift_ppb": None}, {"drift_ppb": {"low": low, "high": high}, "traces": 8}]
    document = {"pairs": [others, {"first": first, "second": second, "stretches": stretches}]}
    (check,) = drift_checks(100_000, document)
    assert check == DriftCheck(100_000, 40_000, 160_000, 8)
    assert check.is_inside
    assert check.is_seen


@pytest.mark.parametrize(
    ("comparison", "drift", "wrong"),
    [
        ([Interval(0, 9)], (), False),
        ([Interval(0, 9), Interval(8, 9)], (), True),
        ([], (DriftCheck(100, 0, 200, 3),), False),
        ([], (DriftCheck(100, 150, 200, 3),), True),
    ],
    ids=["inside", "one outside", "drift inside", "drift outside"],
)
def test_what_excludes_the_truth_is_wrong(comparison, drift, wrong):
    assert Outcome(_comparison(comparison), drift).is_wrong is wrong


@pytest.mark.parametrize(
    ("findings", "wrong"),
    [
        (Findings({STEP: 1}, {STEP: 1}, {}), False),
        (Findings({STEP: 1}, {}, {}), True),
        (Findings({}, {}, {HELD: 2}), False),
    ],
    ids=["found", "missing", "one more than expected"],
)
def test_what_is_not_found_is_wrong(findings, wrong):
    assert Outcome(_comparison([], findings)).is_wrong is wrong


def test_goals_count_over_all_scenarios():
    outcomes = [
        Outcome(_comparison([Interval(0, 9), Interval(8, 9)], Findings({STEP: 1}, {STEP: 1}, {}))),
        Outcome(_comparison([Interval(0, 9)], Findings({}, {}, {HELD: 2}))),
    ]
    assert [str(goal).removeprefix("goal ") for goal in goals(outcomes)] == [
        "delay_error_of_its_limit 50.0% 100% met",
        "offsets_inside 2.00 3 short",
        "expected_findings 1.00 1 met",
        "unexpected_findings 2.00 0 short",
        "steps_found 1.00 1 met",
    ]


def test_a_table_shows_the_interval_around_the_truth():
    clocks = tables(Outcome(_comparison([Interval(0, 9 * MS), Interval(None, 9 * MS)])))[1]
    assert clocks.rows == [["engine, monotonic", "+0.000", "+0.000 … +9.000", "2/2"]]


def test_the_tables_take_the_place_between_the_marks():
    page = f"before\n{BEGIN}\nold\n{END}\nafter"
    written = put_into(page, markdown([Outcome(_comparison([Interval(0, 9)]))], "python 3"))
    assert written.startswith(f"before\n{BEGIN}\n\nMeasured with python 3.\n\n### test")
    assert written.endswith(f"{END}\nafter")
    assert "old" not in written


def test_a_page_without_the_marks_is_left_alone():
    with pytest.raises(ValueError, match="no lines"):
        put_into(f"{END} {BEGIN}", "tables")


def test_scenarios_have_names_of_their_own():
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def _comparison(intervals: list[Interval], findings: Findings = NOTHING) -> Comparison:
    """The truth is 5 ns everywhere but where an interval is of milliseconds: there it is 0."""
    checks = tuple(OffsetCheck("engine", False, _truth(each), each) for each in intervals)
    delay = Attribution("queue", (Delay(100 * MS),), (101 * MS,))
    return Comparison(Scenario("test", "of it"), (delay,), checks, findings, 3, 0)


def _truth(interval: Interval) -> int:
    return 0 if interval.high_ns == 9 * MS else 5
