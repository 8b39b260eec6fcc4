"""The whole processor: spans in, an explained trace out, in four steps that know no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.annotate import annotate
from llmlat_processor.stages.assemble import assemble
from llmlat_processor.stages.critical_path import critical_paths


def process(spans: Iterable[Span], assumptions: Assumptions = Assumptions()) -> ExplainedTrace:
    """Explain one trace.

    Args:
        spans: every span of one trace, in any order, duplicates included.
        assumptions: tolerances; the result states what was used.
    """
    trace = assemble(spans, assumptions)
    aligned = align_clocks(trace)
    paths = critical_paths(aligned)
    return annotate(aligned, paths)
