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
    return process_all((spans,), assumptions)[0]


def process_all(
    traces: Iterable[Iterable[Span]], assumptions: Assumptions = Assumptions()
) -> list[ExplainedTrace]:
    """Explain several traces, each by itself: the same as one after the other, and faster.

    Each step is taken for all of them before the next one, so that its code stays in the caches of
    the processor: on small traces that is a quarter of the time where it is compiled, a tenth where
    it is not. All of them are held until the last one is done.

    Args:
        traces: of each every span, in any order, duplicates included.
        assumptions: tolerances; the results state what was used.
    """
    assembled = [assemble(spans, assumptions) for spans in traces]
    aligned = [align_clocks(trace) for trace in assembled]
    found = [critical_paths(trace) for trace in aligned]
    return [annotate(trace, paths) for trace, paths in zip(aligned, found, strict=True)]
