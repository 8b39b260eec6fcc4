"""The fuzzer itself: nothing is wrong with us on a small stretch, and it sees what is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any

import pytest

from llmlat_processor.wire import json_fields, protobuf, sharding, values
from tests.fuzz import json_mutations, protobuf_mutations
from tests.fuzz.__main__ import COMMAND, GOALS
from tests.fuzz.json_writing import tree_of, varied
from tests.fuzz.protobuf_fields import joined, split
from tests.fuzz.rounds import fuzz, request_of
from tests.fuzz.sound import sound_request

SEVERAL = range(1_500)
SOUND = [sound_request(Random(seed)) for seed in range(20)]

Patch = Callable[[pytest.MonkeyPatch], None]


def test_a_stretch_of_damaged_requests_harms_nobody() -> None:
    tally = fuzz(SEVERAL)
    assert tally.faults == []
    assert tally.counts["requests"] == len(SEVERAL)
    enough = ("protobuf", "JSON", "refused whole", "accepted by the oracle", "spans refused")
    assert all(tally.counts[what] > len(SEVERAL) // 10 for what in enough)
    assert tally.counts["spans kept"] > len(SEVERAL)


def test_a_request_is_made_of_its_seed_alone() -> None:
    requests = [request_of(seed) for seed in SEVERAL]
    assert [request_of(seed) for seed in reversed(SEVERAL)] == requests[::-1]
    assert len({*requests[:50]}) == 50


def test_what_damages_one_document_stays_whole_for_the_next() -> None:
    """Put in as it was, and damaged there, it became part of itself after some 100,000 of them."""
    document, whole = json.dumps(tree_of(SOUND[0])), repr(json_mutations._VALUES)
    for seed in range(3_000):
        json_mutations.mutated(json.loads(document), Random(seed))
    assert repr(json_mutations._VALUES) == whole


def _trust_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protobuf, "_parses", lambda request: True)


def _take_any_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protobuf, "_fault", lambda *ids: "")


def _take_a_long_parent(patch: pytest.MonkeyPatch) -> None:
    sound = protobuf._fault
    patch.setattr(protobuf, "_fault", lambda trace, span, parent: sound(trace, span, b""))


def _forget_which_value(patch: pytest.MonkeyPatch) -> None:
    """What was read of one client's attribute is read of another's."""
    known: dict[bytes, Any] = {}
    sound = values._read
    patch.setattr(values, "_read", lambda pair: known.setdefault(pair[:12], sound(pair)))
    patch.setattr(values, "_pairs", {})
    patch.setattr(values, "_remember", lambda *entry: None)


def _add_in_front(patch: pytest.MonkeyPatch) -> None:
    encoding = import_module("llmlat_processor.wire.encode")  # the package has a function so named
    sound = encoding.extended
    patch.setattr(encoding, "extended", lambda raw, more: sound(b"", more) + raw)


def _read_small_numbers_only(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(json_fields._EVENT, "timeUnixNano", ("time_unix_nano", lambda value: 1))


def _stumble(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protobuf.SpanReader, "_link", lambda self, serialized: 1 // len(serialized[:0]))


def _lose_a_shard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sharding, "shard_of", lambda trace_id, count: 1)


@pytest.mark.parametrize(
    ("plant", "checks"),
    [
        (_trust_all, {"part", "raised"}),
        (_take_any_id, {"kept", "changed"}),
        (_take_a_long_parent, {"kept", "changed"}),
        (_forget_which_value, {"kept", "neighbour"}),
        (_add_in_front, {"passing"}),
        (_read_small_numbers_only, {"json"}),
        (_stumble, {"raised"}),
        (_lose_a_shard, {"divided"}),
    ],
)
def test_a_defect_of_ours_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Patch, checks: set[str]
) -> None:
    fuzz(range(1))  # what is made once is made before
    plant(monkeypatch)
    found = {fault.check for fault in fuzz(range(600)).faults}
    assert found >= checks
    assert found <= set(GOALS.values())


@pytest.mark.parametrize("mutation", sorted(set(protobuf_mutations.MUTATIONS), key=repr))
def test_every_mutation_changes_requests(mutation: protobuf_mutations.Mutation) -> None:
    others = [message.SerializeToString() for message in SOUND]
    changed = 0
    for seed, request in enumerate(others):
        fields = split(request)
        assert fields is not None
        assert joined(fields) == request
        inner = split(fields[0].value)
        assert inner is not None
        before = joined(inner)
        mutation(Random(seed), inner, others)
        changed += joined(inner) != before
    assert changed or mutation.__name__ in {"stamp"}  # there are no instants on that level


@pytest.mark.parametrize("seed", range(20))
def test_a_json_document_in_any_way_is_other_text(seed: int) -> None:
    tree = tree_of(SOUND[seed])
    plain = json.dumps(tree)
    assert varied(json.loads(plain), Random(seed)) != plain
    damaged = {json_mutations.mutated(json.loads(plain), Random(n)) for n in range(20)}
    assert len(damaged - {plain.encode()}) > 10


def test_the_command_ends_with_its_goals(capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMAND.run(["--requests", "40", "--seed", "7", "--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-len(GOALS) - 1 :] == [
        "goal fuzz-requests 40 40 met",
        *(f"goal fuzz-{name} 0 0 met" for name in GOALS),
    ]


def test_the_command_shows_how_to_have_a_fault_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzz(range(1))
    _take_any_id(monkeypatch)
    assert COMMAND.run(["--requests", "200", "--jobs", "1", "--faults", "1"]) == 1
    told = capsys.readouterr().out
    assert "  again: python -m tests.fuzz --seed " in told
    assert any(line.startswith("goal fuzz-kept-") for line in told.splitlines() if "short" in line)
    again = int(told.split("--seed ")[1].split()[0])
    assert Counter(fault.check for fault in fuzz(range(again, again + 1)).faults)
