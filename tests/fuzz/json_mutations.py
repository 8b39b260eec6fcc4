"""Damage to a JSON document: in what it says, and in how it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Final

from llmlat_semconv import attributes as names
from tests.fuzz.json_writing import IDS, Json, objects

_TEXTWISE: Final = 0.35
_VALUES: Final[Sequence[Json]] = (
    None, True, False, 0, -1, 1.5, 1e308, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**400, -(2**63),
    "", "0", "-1", "1e3", " 7 ", "\u0661", "1_0", "9" * 5_000, "NaN", "Infinity",
    "x", "\0", "zz" * 16,
    "0" * 32, "0" * 16, "AQIDBAUGBwg=", "ab" * 16, "AB " * 8, [], {}, [[]], [{}], {"": {}}, [None],
    [1, 2, 3], [0] * 16, [300] * 8, {"values": [{}]}, {"stringValue": 1}, float("nan"),
    float("inf"), {"kvlistValue": {"values": [{"key": "k"}]}}, {"bytesValue": "=="},
)  # fmt: skip
_KEYS: Final = (
    "traceId", "spanId", "parentSpanId", "name", "kind", "attributes", "events", "links", "status",
    "value", "key", "resource", "scope", "spans", "scopeSpans", "resourceSpans", "trace_id",
    "TraceId", "traceID", "start_time_unix_nano", "schemaUrl", "", "__class__", "\0", "flags",
    "droppedAttributesCount", "stringValue", "arrayValue", "intValue", "doubleValue",
)  # fmt: skip
_DEPTHS: Final = (3, 20, 48, 50, 52, 100, 300)

TreeMutation = Callable[[Random, dict[str, Json]], None]


def mutated(tree: Json, random: Random) -> bytes:
    """A tree that nobody else has, with something wrong in it, as a document; it is changed."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        node = random.choice(objects(tree))
        random.choice(MUTATIONS)(random, node)
    try:
        document = json.dumps(tree, ensure_ascii=random.random() < 0.5)
    except (RecursionError, ValueError):  # it has become too deep, or too long a number
        document = "[" * 3_000 + "]" * 3_000
    written = document.encode("utf-8", "surrogatepass")
    if random.random() < _TEXTWISE:
        written = random.choice(TEXTWISE)(random, written)
    return written


def _value(random: Random) -> Json:
    """One for this tree alone, since it may be damaged further there."""
    return deepcopy(random.choice(_VALUES))


# ── Of objects ───────────────────────────────────────────────────────────────────────────────────


def other_value(random: Random, node: dict[str, Json]) -> None:
    if node:
        node[random.choice([*node])] = _value(random)


def other_key(random: Random, node: dict[str, Json]) -> None:
    if node:
        node[random.choice(_KEYS)] = node.pop(random.choice([*node]))


def snake(random: Random, node: dict[str, Json]) -> None:
    """Protobuf's spelling of a name, which OTLP does not know."""
    if node:
        key = random.choice([*node])
        node[re.sub("([A-Z])", lambda capital: "_" + capital[1].lower(), key)] = node.pop(key)


def dropped(random: Random, node: dict[str, Json]) -> None:
    if node:
        del node[random.choice([*node])]


def added(random: Random, node: dict[str, Json]) -> None:
    node[random.choice(_KEYS)] = _value(random)


def in_a_list(random: Random, node: dict[str, Json]) -> None:
    if node:
        key = random.choice([*node])
        node[key] = [node[key]] * random.choice((1, 2, 30))


def into_itself(random: Random, node: dict[str, Json]) -> None:
    """An object where one of its parts should be."""
    if node:
        node[random.choice([*node])] = dict(node)


def identity(random: Random, node: dict[str, Json]) -> None:
    node[random.choice(IDS)] = random.choice(
        ("", "00" * 8, "00" * 16, "ab" * 7, "ab" * 9, "ab" * 16, "AB" * 8, "ag" * 8, [1] * 8, 7)
    )


def deep(random: Random, node: dict[str, Json]) -> None:
    value: Json = {"stringValue": "inmost"}
    for _ in range(random.choice(_DEPTHS)):
        wrap = [{"arrayValue": {"values": [value]}}]
        wrap.append({"kvlistValue": {"values": [{"key": "k", "value": value}]}})
        value = random.choice(wrap)
    node["attributes"] = [{"key": names.GEN_AI_OPERATION_NAME, "value": value}]


def surrogate(random: Random, node: dict[str, Json]) -> None:
    if node:
        alone = random.choice(("\ud800", "\udfff", "a\ud83d", "\udd8a\ud83e"))
        node[random.choice([*node])] = alone


MUTATIONS: Final[Sequence[TreeMutation]] = (
    other_value, other_value, other_value, other_key, snake, dropped, added, in_a_list,
    into_itself, identity, identity, deep, surrogate,
)  # fmt: skip

# ── Of text ──────────────────────────────────────────────────────────────────────────────────────


def _cut_off(random: Random, document: bytes) -> bytes:
    return document[: random.randint(0, len(document))]


def _flip(random: Random, document: bytes) -> bytes:
    changed = bytearray(document)
    changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _mark(random: Random, document: bytes) -> bytes:
    """A byte order mark, or another encoding altogether."""
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
    encoded = document.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32")))
    return random.choice((random.choice(marks) + document, encoded))


def _twice(random: Random, document: bytes) -> bytes:
    """One key twice in one object."""
    keys = [*re.finditer(rb'"\w+": ', document)]
    if not keys:
        return document
    key = random.choice(keys)
    again = key[0] + random.choice((b"null", b"1", b'"x"', b"[]", b"{}")) + b", "
    return document[: key.start()] + again + document[key.start() :]


def _behind(random: Random, document: bytes) -> bytes:
    rest = (b" ", b"\n\n", b"x", b",", b"]", b"}", b"\0", document, b"\xff")
    return document + random.choice(rest)


def _number(random: Random, document: bytes) -> bytes:
    """Numbers that JSON does not have, or that nothing can hold."""
    numbers = [*re.finditer(rb"-?\d+", document)]
    if not numbers:
        return document
    number = random.choice(numbers)
    others = (b"NaN", b"-Infinity", b"1e400", b"1e-400", b"0x10", b"01", b"+1", b".5", b"9" * 400)
    return document[: number.start()] + random.choice(others) + document[number.end() :]


def _brackets(random: Random, document: bytes) -> bytes:
    depth = random.choice((10, 1_000, 1_100, 100_000))
    opening, closing = random.choice(((b"[", b"]"), (b'{"resourceSpans":[', b"]}"), (b"[", b"")))
    return opening * depth + closing * depth


TEXTWISE: Final = (_cut_off, _flip, _mark, _twice, _behind, _number, _brackets)
