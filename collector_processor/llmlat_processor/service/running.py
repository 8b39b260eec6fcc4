"""One process, or several that share the work: whichever an operator has set up."""

from __future__ import annotations

import resource
from contextlib import suppress

from llmlat_processor.service.circles import check_circles
from llmlat_processor.service.processor import Processor
from llmlat_processor.service.resharding import reshard
from llmlat_processor.service.sharded import Sharded
from llmlat_processor.settings import Deployment


def run(deployment: Deployment) -> Processor | Sharded:
    """Receive OTLP, and send on what this says.

    Args:
        deployment: where from and where to, limits, what is added, and how many share the work.

    Raises:
        OSError: an address or the journal cannot be had; the message says what to do.
        ValueError: one of them is not a host and a port, or spans would go round in a circle.
    """
    _allow_connections()
    check_circles(deployment)
    if deployment.state is not None:
        reshard(deployment.state, deployment.workers, deployment.journal)
    return Sharded(deployment) if deployment.workers > 1 else Processor(deployment)


def _allow_connections() -> None:
    """Each connection is a file; how many may be open is mostly set low for the sake of others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
