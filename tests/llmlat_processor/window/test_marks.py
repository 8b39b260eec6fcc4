"""Marks are known when they come again, and of any number the latest are."""

from __future__ import annotations

import pytest

from llmlat_processor.window.marks import Generations, Marks


def test_marks_are_known_however_they_came() -> None:
    marks = Marks([5, 3])
    marks.add(9, 1)
    for mark in range(20, 120):
        marks.add(mark)

    assert all(mark in marks for mark in (1, 3, 5, 9, *range(20, 120)))
    assert not any(mark in marks for mark in (0, 2, 19, 120))
    assert len(marks) == 104
    assert len(marks.runs) <= 8


@pytest.mark.parametrize("limit", [0, 1, 2, 10, 20_000])
def test_of_many_the_latest_half_at_least_is_known_and_never_more_than_the_limit(
    limit: int,
) -> None:
    known = Generations(limit)
    for mark in range(3 * limit + 5):
        known.add(mark)
        assert len(known) <= limit

    newest = 3 * limit + 4
    assert all(mark in known for mark in range(newest - limit // 2 + 1, newest + 1))
    assert 0 not in known
