"""Destinations that are ourselves: spans would go round for ever."""

from __future__ import annotations

from llmlat_processor.edges.addresses import are_one_place, endpoint_of
from llmlat_processor.edges.grpc_receiver import UNIX
from llmlat_processor.settings import Deployment


def check_circles(deployment: Deployment) -> None:
    """See that nothing is sent to where it comes in.

    Raises:
        ValueError: it would be; or an address is none.
    """
    doors = (deployment.grpc, deployment.http)
    listeners = [one for one in doors if one is not None and not one.address.startswith(UNIX)]
    destinations = [one for one in (deployment.spans, deployment.derived) if one is not None]
    for destination in destinations:
        at = endpoint_of(destination).address
        for listener in listeners:
            if are_one_place(listener.address, at):
                raise ValueError(f"{at} is where it listens: spans would go round in a circle")
