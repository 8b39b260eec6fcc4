"""One damaged request after the other, each made of its seed alone, and what is wrong with each."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final, NamedTuple

from llmlat_processor.wire import Decoded, UndecodableError, decode, decode_json
from tests.fuzz import json_mutations, protobuf_mutations
from tests.fuzz.dividing import faults_of_halves, faults_of_shards
from tests.fuzz.json_reading import read_by_protobuf
from tests.fuzz.json_writing import tree_of, varied
from tests.fuzz.oracle import (
    faults_of_kept,
    faults_of_part,
    faults_of_whole,
    parsed,
    same_spans,
)
from tests.fuzz.passing import Neighbour, Way, faults_of_passing
from tests.fuzz.sound import sound_request
from tests.seeded import Fault, Tally

CORPUS: Final = 64
"""Sound requests that are damaged; there are as many neighbours."""

_JSON: Final = 0.25
_SOUND: Final = 0.2
"""How many of the JSON documents are sound, and only written otherwise."""

_Wrong = Iterator[tuple[str, str]]


class _World(NamedTuple):
    """What is made once for a process."""

    requests: list[bytes]
    documents: list[str]
    way: Way
    neighbours: list[Neighbour]


@cache
def _world() -> _World:
    messages = [sound_request(Random(seed)) for seed in range(CORPUS)]
    way = Way()
    return _World(
        [message.SerializeToString() for message in messages],
        [json.dumps(tree_of(message)) for message in messages],
        way,
        [Neighbour(seed, way) for seed in range(CORPUS)],
    )


def fuzz(seeds: range) -> Tally:
    """Make and check the requests of some seeds."""
    tally = Tally()
    _world()  # what is raised here is no fault of a request
    for seed in seeds:
        tally.counts["requests"] += 1
        try:
            tally.faults += [Fault(check, seed, what) for check, what in _wrong(seed, tally.counts)]
        except Exception:  # noqa: BLE001 - whatever is raised is a fault of that seed
            tally.faults.append(Fault("raised", seed, traceback.format_exc()))
    return tally


def request_of(seed: int) -> bytes:
    """The request of a seed, protobuf or JSON."""
    random = Random(seed)
    world = _world()
    number = random.randrange(CORPUS)
    if random.random() >= _JSON:
        return protobuf_mutations.mutated(world.requests[number], random, world.requests)
    tree = json.loads(world.documents[number])
    if random.random() < _SOUND:
        return varied(tree, random).encode()
    return json_mutations.mutated(tree, random)


def _wrong(seed: int, counts: Counter[str]) -> _Wrong:
    random = Random(seed)
    number, is_json = random.randrange(CORPUS), random.random() < _JSON
    is_sound = is_json and random.random() < _SOUND
    request = request_of(seed)
    counts["JSON" if is_json else "protobuf"] += 1
    try:
        decoded = decode_json(request) if is_json else decode(request)
    except UndecodableError:
        counts["refused whole"] += 1
        if is_sound or (not is_json and parsed(request) is not None):
            yield "refused", "refused whole, though the oracle accepts it"
        return
    counts["spans kept"] += len(decoded.spans)
    counts["spans refused"] += decoded.refused
    yield from (("kept", words) for words in faults_of_kept(decoded))
    if is_json and not decoded.damaged:
        read = sound_request(Random(number)) if is_sound else read_by_protobuf(request)
        if read is not None and not same_spans(decoded, read):
            yield "json", "not read as protobuf reads it"
    elif is_sound:
        yield "json", f"a sound document is damaged: {decoded.damaged[0]}"
    if not is_json:
        yield from _unlike_the_oracle(request, decoded, counts)
    world = _world()
    neighbour = world.neighbours[seed % CORPUS]
    yield from faults_of_passing(decoded.spans, neighbour, world.way, random)


def _unlike_the_oracle(request: bytes, decoded: Decoded, counts: Counter[str]) -> _Wrong:
    whole = parsed(request)
    if whole is not None:
        counts["accepted by the oracle"] += 1
        yield from (("changed", words) for words in faults_of_whole(whole, decoded))
    else:
        yield from (("part", words) for words in faults_of_part(request, decoded))
    yield from (("divided", words) for words in faults_of_shards(request, decoded))
    yield from (("divided", words) for words in faults_of_halves(decoded))
