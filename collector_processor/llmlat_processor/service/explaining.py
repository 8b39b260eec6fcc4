"""Explains a trace, and lets no trace that we fail at end the work for all the others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from llmlat_processor.model import Assumptions, ExplainedTrace, Span

UNEXPLAINED: Final = "a fault of ours"

Explain = Callable[[Iterable[Span], Assumptions], ExplainedTrace]

_Answer = TypeVar("_Answer")

_logger = logging.getLogger("llmlat_processor")


def explain_now(explain: Explain, spans: Sequence[Span]) -> ExplainedTrace:
    """Explain a trace that was received just now."""
    return explain(spans, Assumptions(received_ns=time.time_ns()))


def attempted(work: Callable[[Sequence[Span]], _Answer], spans: Sequence[Span]) -> _Answer | None:
    """What the work makes of the spans of a trace, or None where it failed, which is logged."""
    try:
        return work(spans)
    except Exception:
        trace_id = spans[0].trace_id.hex()
        _logger.exception("trace %s could not be explained; please report this", trace_id)
        return None
