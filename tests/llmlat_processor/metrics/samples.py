"""Families with all that there can be in them: every metric, every label, exemplars."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from llmlat_processor.metrics.derived import Derived
from llmlat_processor.metrics.own import Delays, Usage, own_families
from llmlat_processor.metrics.series import Histograms
from llmlat_processor.model.families import Exemplar, Family
from llmlat_processor.model.status import Books, Journaled, Sending, Status, Worker
from llmlat_processor.pipeline import process
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import LLMLAT_CRITICAL_PATH_PHASE_DURATION
from tests.llmlat_processor.adviser import adviser_spans

START_NS: Final = 1_764_421_000_000_000_000
NOW_NS: Final = START_NS + 500_000_000_000

TRACE_ID: Final = bytes(range(16))
SPAN_ID: Final = bytes(range(8))

BOOKS: Final = Books(
    received=1_200,
    added=120,
    sent=1_300,
    repeated=3,
    held=8,
    queued=7,
    dropped={"rejected by the destination": 2},
    traces=12,
    as_they_came={"late": 4},
    late=4,
    revisions=1,
    replayed=20,
    refused=5,
    other={"metrics": 6},
)

STATUS: Final = Status(
    BOOKS,
    mode="inline",
    uptime_s=3 * 3_600 + 720,
    held_traces=2,
    held_bytes=1_258_291,
    skeleton_bytes=2_048,
    forgotten_skeletons=3,
    waiting_bytes=12,
    destinations={
        "tempo:4317": Sending(1_300, 7, 4_096, 2, "UNAVAILABLE: it is down"),
        "jaeger:4317": Sending(),
    },
    journal=Journaled(batches=12, kept_bytes=1_048_576),
    workers=(Worker("0", BOOKS, 1_258_291),),
)


def every_family() -> list[Family]:
    """All that a processor tells, after one trace."""
    derived, delays = Derived(100), Delays()
    explained = process(adviser_spans())
    derived.observe(replace(explained, paths=replace(explained.paths, unread={"my.engine": 2})))
    delays.observe(2.5)
    return [
        *own_families(STATUS, START_NS, Usage(cpu_s=1.5, memory_bytes=90_000_000)),
        delays.family(START_NS),
        *derived.families(START_NS),
    ]


observations = st.lists(
    st.tuples(
        st.text(max_size=5),
        st.text(st.characters(exclude_categories=()), max_size=5),
        st.floats(0, 200),
    ),
    max_size=30,
)
"""Label, service and seconds; half a surrogate may be among the texts."""


def observed(rows: list[tuple[str, str, float]], most: int) -> Family:
    """A histogram of the contract with these observations."""
    histograms = Histograms(
        LLMLAT_CRITICAL_PATH_PHASE_DURATION,
        (names.LLMLAT_SECTION_LABEL, names.SERVICE_NAME),
        most,
    )
    for label, service, value in rows:
        histograms.observe((label, service), value, Exemplar(value, NOW_NS, TRACE_ID, SPAN_ID))
    return histograms.family(START_NS)
