"""Explains a trace, and lets no trace that we fail at end the work for all the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process, process_all

UNEXPLAINED: Final = "a fault of ours"

Explain = Callable[[Iterable[Span], Assumptions], ExplainedTrace]

_Answer = TypeVar("_Answer")

_logger = logging.getLogger("llmlat_processor")


def explain_now(explain: Explain, spans: Sequence[Span]) -> ExplainedTrace:
    """Explain a trace that was received just now."""
    return explain(spans, Assumptions(received_ns=time.time_ns()))


def explain_together(
    explain: Explain, several: Sequence[Sequence[Span]]
) -> Sequence[ExplainedTrace | None]:
    """Explain several traces, which is faster; none where one fails: then each has to be tried."""
    if explain is not process:
        return [None] * len(several)
    try:
        return process_all(several, Assumptions(received_ns=time.time_ns()))
    except Exception:
        _logger.debug("one of %d traces could not be explained", len(several), exc_info=True)
        return [None] * len(several)


def attempted(
    work: Callable[[Sequence[Span]], _Answer], spans: Sequence[Span], what: str = "explained"
) -> _Answer | None:
    """What the work makes of the spans of a trace, or None where it failed, which is logged."""
    try:
        return work(spans)
    except Exception:
        trace_id = spans[0].trace_id.hex()
        _logger.exception("trace %s could not be %s; please report this", trace_id, what)
        return None
