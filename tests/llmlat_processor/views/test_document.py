"""The JSON document: what it says of clocks, proofs, other paths and both observers."""

from __future__ import annotations

import json
from typing import Any

from llmlat_processor.model import Alternative, ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.views.document import document
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import MS, adviser_spans


def told(explained: ExplainedTrace) -> Any:
    """The document as whoever reads it has it."""
    return json.loads(json.dumps(document(explained)))


def test_it_says_what_is_known_of_the_clocks() -> None:
    known = clocked.clocks({"gpu-1": clocked.between(6_700, None)}, left_out=3)
    clocks = told(clocked.adviser(known=known))["clocks"]

    assert (clocks["reference"], clocks["left_out"]) == ("laptop", 3)
    assert clocks["domains"] == [
        {
            "domain": domain,
            "services": [service],
            "offset_ns": {"low": low, "high": high},
            "wall_offset_ns": {"low": low, "high": high},
            "messages": 2,
        }
        for domain, service, low, high in (
            ("laptop", "adviser", 0, 0),
            ("gpu-1", "vllm", 6_700 * MS, None),
        )
    ]


def test_a_finding_about_clocks_has_its_interval_and_its_proof() -> None:
    proved, apparent = told(clocked.adviser(clocked.contradiction(), clocked.apparent()))[
        "findings"
    ]

    assert (proved["interval_ns"], apparent["proof"]) == (None, [])
    assert apparent["interval_ns"] == {"low": 6_700 * MS, "high": 6_760 * MS}
    request, answer = proved["proof"]
    assert list(request) == [
        "sender",
        "receiver",
        "left_ns",
        "arrived_ns",
        "epsilon_ns",
        "tail_ns",
        "drift_ns",
        "left",
        "arrived",
    ]
    assert (request["sender"], answer["sender"]) == ("laptop", "gpu-1")
    assert (request["left"], request["arrived"]) == (f"{10:016x}", f"{15:016x}")
    allowed = ("epsilon_ns", "tail_ns", "drift_ns")
    limits = [
        one["arrived_ns"] - one["left_ns"] + sum(one[key] for key in allowed)
        for one in proved["proof"]
    ]
    assert sum(limits) == proved["amount_ns"] < 0


def test_it_says_where_the_clocks_allow_another_path() -> None:
    other = Alternative(clocked.CHAT, clocked.OTHER)
    (root,) = told(clocked.ambiguous(clocked.adviser(), other))["roots"]

    assert root["e2e"]["alternatives"] == [{"entered": f"{10:016x}", "other": f"{3:016x}"}]
    assert root["ttft"]["alternatives"] == root["e2e"]["alternatives"]


def test_both_observers_of_a_first_content_are_in_it() -> None:
    assert told(process(adviser_spans()))["first_contents"] == [
        {
            "call": f"{10:016x}",
            "callee": f"{15:016x}",
            "server_ns": 330 * MS,
            "client_ns": 380 * MS,
            "transit_ns": 50 * MS,
        }
    ]
