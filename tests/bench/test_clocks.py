"""Traces over many clocks reach all of them, and a full state is as full as it may be."""

import pytest

from bench.clocks import size_of_state
from bench.domains import across
from llmlat_processor.stages.align_clocks import align_clocks


@pytest.mark.parametrize(("size", "domains"), [(100, 8), (2_000, 200)])
def test_a_trace_reaches_every_clock_and_contradicts_none(size, domains):
    aligned = align_clocks(across(size, domains, work=0))

    assert len(aligned.trace.operations) == size
    assert len(set(aligned.domains)) == domains
    # Both ways of a call, but for the last one where the number of spans cuts its answer off.
    assert len(aligned.clocks.messages) >= size - 10
    violations = {finding.kind.value for finding in aligned.findings}
    assert violations <= {"apparent_negative_network"}


def test_with_work_in_each_server_one_span_in_five_has_a_parent_on_another_clock():
    aligned = align_clocks(across(1_001, 8))

    assert len(aligned.trace.operations) == 1_001
    assert len(aligned.clocks.messages) == 2 * 200


def test_a_pair_that_is_full_has_all_its_bounds_and_odd_ones():
    one, _ = size_of_state(1)
    some, saved = size_of_state(11)

    # 64 bounds of 48 bytes and 4 odd traces; nothing grows beyond that.
    assert 4 < (some - one) * 1024 / 10 < 10
    assert saved > 11 * 64 * 48
