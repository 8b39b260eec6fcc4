"""The extreme trees have the shape that they are named for."""

import pytest

from bench.paths import frames_of
from bench.trees import deep, wide
from llmlat_processor.stages.critical_path import critical_paths


def test_wide_children_follow_each_other():
    trace = wide(5).trace
    assert trace.parents == (-1, 0, 0, 0, 0)
    starts = [span.start_ns - trace.operations[0].start_ns for span in trace.operations[1:]]
    assert starts == [10_000, 20_000, 30_000, 40_000]
    assert {span.duration_ns for span in trace.operations[1:]} == {8_000}


def test_deep_children_lie_in_each_other():
    trace = deep(4).trace
    assert trace.parents == (-1, 0, 1, 2)
    assert [span.duration_ns for span in trace.operations] == [10**9 - 2_000 * i for i in range(4)]


@pytest.mark.parametrize("make", [wide, deep])
def test_all_of_it_is_on_the_path(make):
    (root,) = critical_paths(make(50)).roots
    assert len(root.self_times_ns) == 50
    assert root.e2e.duration_ns == root.root.duration_ns


def test_frames_are_counted_at_their_deepest():
    def down(levels):
        if levels:
            down(levels - 1)

    assert frames_of(lambda: down(20)) - frames_of(lambda: down(0)) == 20


def test_depth_costs_no_frames():
    assert frames_of(lambda: critical_paths(deep(2_000))) == frames_of(
        lambda: critical_paths(deep(20))
    )
