"""The clocks of any world: offsets hold the truth, tightly; only the impossible is called so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.properties.arbitrary import arbitrary_spans
from tests.properties.clock_checks import ALWAYS, IN_TURN, aligned, wider_faults
from tests.properties.clock_plants import (
    KINDS,
    blame_faults,
    claim_faults,
    explained,
    lying_world,
    plant_faults,
    planted_world,
)
from tests.properties.clock_shapes import grown_world

SEEDS: Any = st.integers(0, 2**32)


def _again(seed: int) -> None:
    note(f"again: python -m tests.properties.soak_clocks --seed {seed} --traces 1")


@pytest.mark.parametrize("check", ALWAYS)
@given(seed=SEEDS)
def test_what_every_world_shows(check: str, seed: int) -> None:
    _again(seed)
    world = grown_world(seed)
    assert ALWAYS[check](world, aligned(world.spans(), world.assumptions)) == []


@pytest.mark.parametrize("check", IN_TURN)
@given(seed=SEEDS)
def test_what_changes_nothing_or_only_one_offset(check: str, seed: int) -> None:
    _again(seed)
    world = grown_world(seed)
    assert IN_TURN[check](world, aligned(world.spans(), world.assumptions)) == []


@pytest.mark.parametrize("kind", KINDS, ids=[kind.value for kind in KINDS])
@given(seed=SEEDS)
def test_what_was_planted_is_found_and_proved(kind: FindingKind, seed: int) -> None:
    plant = planted_world(seed, kind)
    found = explained(plant)
    assert plant_faults(plant, found) == []
    assert blame_faults(plant, found) == []


@given(SEEDS)
def test_stamps_that_lie_are_called_impossible_where_they_are(seed: int) -> None:
    world = lying_world(seed)
    found = aligned(world.spans(), world.assumptions)
    assert claim_faults(world, found) == []
    assert wider_faults(world, found) == []


@given(arbitrary_spans())
def test_hostile_traces_are_aligned_twice_alike(spans: Sequence[Span]) -> None:
    world = grown_world(0)
    first = aligned(spans, world.assumptions)
    again = aligned(list(reversed(spans)), world.assumptions)
    assert (first.clocks, first.findings) == (again.clocks, again.findings)
    assert process(spans, world.assumptions).aligned.clocks == first.clocks


@given(SEEDS, arbitrary_spans(max_size=4))
def test_hostile_spans_among_others_are_aligned_twice_alike(
    seed: int, spans: Sequence[Span]
) -> None:
    world = grown_world(seed)
    mixed = [*world.spans(), *spans]
    first, again = (aligned(each, world.assumptions) for each in (mixed, mixed[::-1]))
    assert (first.clocks, first.findings) == (again.clocks, again.findings)
