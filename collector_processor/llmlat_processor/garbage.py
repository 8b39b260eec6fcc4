"""How often the interpreter looks for garbage in whatever handles many traces."""

from __future__ import annotations

import gc


def relax_collector() -> None:
    """Collect garbage less often: a trace is many small objects that all live until it is done.

    With the defaults a third of the time goes into looking through them again and again.
    """
    gc.set_threshold(100_000, 20, 50)
