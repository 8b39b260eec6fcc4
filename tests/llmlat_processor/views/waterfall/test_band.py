"""Where an operation of another clock can have been: a band, and nothing is moved by it."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.model import Clocks, ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.views.waterfall.placement import Band, Placement
from llmlat_processor.views.waterfall.rows import Row, rows_of
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import ENGINE, MS, adviser_spans, span


def rows(explained: ExplainedTrace) -> tuple[Row, ...]:
    return rows_of(Placement(explained, explained.paths.roots[0]), None).drawn


def engine(explained: ExplainedTrace) -> Row:
    return next(row for row in rows(explained) if row.span.span_id == clocked.SERVED)


def without_drift(explained: ExplainedTrace) -> ExplainedTrace:
    trace = replace(explained.trace, assumptions=replace(explained.trace.assumptions, drift_ppm=0))
    return replace(explained, aligned=replace(explained.aligned, trace=trace))


#   raw stamps           7000 ├────────┤ 7540
#   6.78 s ahead   220 ├────────┤ 760
#   6.70 s ahead      300 ├────────┤ 840
def test_the_band_is_what_the_interval_allows() -> None:
    found = engine(without_drift(clocked.adviser()))
    assert found.band == Band(220 * MS, 840 * MS, 80 * MS)


def test_the_bar_stands_where_durations_put_it_whatever_the_interval() -> None:
    bare = engine(clocked.one_clock())
    assert bare.band is None
    for low, high in ((6_700, 6_780), (0, 1), (-9_000, 9_000)):
        known = clocked.clocks({clocked.GPU: clocked.between(low, high)})
        assert engine(clocked.adviser(known=known)).stretches == bare.stretches


def test_drift_makes_the_band_wider_as_time_passes() -> None:
    """200 millionths of the 840 ms after which it has ended at the latest."""
    assert engine(clocked.adviser()).band == Band(
        220 * MS - 168_000, 840 * MS + 168_000, 80 * MS + 336_000
    )


def band_with(low: float | None, high: float | None) -> Band | None:
    known = clocked.clocks({clocked.GPU: clocked.between(low, high)})
    return engine(clocked.adviser(known=known)).band


def test_without_an_interval_there_is_no_band() -> None:
    assert band_with(None, None) is None
    assert band_with(6_700, None) is None
    assert band_with(None, 6_780) is None
    left_out = clocked.clocks({})
    assert engine(clocked.adviser(known=left_out)).band is None


def test_on_the_roots_clock_there_is_none() -> None:
    found = [row.span.resource for row in rows(clocked.adviser()) if row.band is not None]
    assert found == [ENGINE]


def test_phases_have_none() -> None:
    assert all(row.band is None for row in rows(clocked.adviser()) if row.is_phase)


def test_an_operation_off_the_path_has_a_band_and_no_bar() -> None:
    audit = span(40, 15, "audit", 7_100, 7_120, ENGINE)
    known = clocked.clocks({clocked.GPU: clocked.between(6_700, 6_780)})
    explained = clocked.with_clocks(process([*adviser_spans(), audit]), known)
    found = next(
        row for row in rows(without_drift(explained)) if row.name == "audit" and not row.is_phase
    )
    assert found.band == Band(320 * MS, 420 * MS, 80 * MS)


def second_root(known: Clocks) -> Row:
    """A root on the engine's clock, with an operation on the laptop's."""
    spans = [
        *adviser_spans(),
        span(60, 0, "job", 7_000, 7_900, ENGINE),
        span(61, 60, "callback", 250, 270),
    ]
    explained = without_drift(clocked.with_clocks(process(spans), known))
    (paths,) = [one for one in explained.paths.roots if one.root.name == "job"]
    drawn = rows_of(Placement(explained, paths), None).drawn
    return next(row for row in drawn if row.name == "callback")


def test_another_roots_clock_is_reached_by_way_of_the_first_ones() -> None:
    """The laptop is 6.70 to 6.78 s behind the engine, whose clock the second root counts on."""
    known = clocked.clocks({clocked.GPU: clocked.between(6_700, 6_780)})
    assert second_root(known).band == Band(-50 * MS, 50 * MS, 80 * MS)
