"""Damage to a serialized request that knows its structure, so that it reaches every level of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from llmlat_semconv import attributes as names
from tests.fuzz.protobuf_fields import (
    DELIMITED,
    END,
    FIXED32,
    FIXED64,
    GROUP,
    REQUEST,
    VARINT,
    Field,
    joined,
    junk,
    split,
    varint,
)

Mutation = Callable[[Random, list[Field], Sequence[bytes]], None]

_IDS: Final = (1, 2, 4)
_DEEPER: Final = 0.85
_BYTEWISE: Final = 0.15
_SIZES: Final = (0, 0, 1, 7, 8, 8, 9, 15, 16, 16, 17, 32, 300)
_DEPTHS: Final = (2, 20, 40, 45, 46, 47, 48, 49, 50, 60, 95, 100, 101, 400)
_NOT_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe6\x97", b"\0")
_INSTANTS: Final = (0, 1, 2**63 - 1, 2**63, 2**64 - 1, 1_790_000_000_000_000_000)


def mutated(request: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """A request with something wrong in it, mostly in one place.

    Args:
        request: a sound one.
        random: what decides.
        others: requests of which parts may be taken.
    """
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if random.random() < _BYTEWISE:
            request = random.choice(BYTEWISE)(random, request)
            continue
        path, fields = _somewhere(request, random)
        random.choice(MUTATIONS)(random, fields, others)
        request = joined(fields)
        for level, index in reversed(path):
            level[index] = level[index]._replace(value=request)
            request = joined(level)
    return request


def _somewhere(request: bytes, random: Random) -> tuple[list[tuple[list[Field], int]], list[Field]]:
    """The fields of a message somewhere in a request, and the way there from outside."""
    path: list[tuple[list[Field], int]] = []
    schema, fields = REQUEST, split(request) or [junk(request)]
    while random.random() < _DEEPER:
        inner = [at for at, f in enumerate(fields) if f.wire == DELIMITED and f.number in schema]
        if not inner:
            break
        (at,) = random.choices(inner, [len(fields[at].value) + 1 for at in inner])
        within = split(fields[at].value)
        if within is None:
            break
        path.append((fields, at))
        schema, fields = schema[fields[at].number], within
    return path, fields


def _place(random: Random, fields: list[Field]) -> int:
    return random.randint(0, len(fields))


def _which(random: Random, fields: list[Field], *wires: int) -> int | None:
    """One of the fields of these wire types."""
    those = [at for at, field in enumerate(fields) if field.wire in wires]
    return random.choice(those) if those else None


# ── Of a message ─────────────────────────────────────────────────────────────────────────────────


def flip(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    at = _which(random, fields, VARINT, FIXED64, FIXED32, DELIMITED)
    if at is not None and fields[at].value:
        value = bytearray(fields[at].value)
        value[random.randrange(len(value))] ^= 1 << random.randrange(8)
        fields[at] = fields[at]._replace(value=bytes(value))


def resize(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """Texts and messages that are something else."""
    at = _which(random, fields, DELIMITED)
    if at is not None:
        size = random.choice(_SIZES)
        value = bytes(size) if random.random() < 0.4 else random.randbytes(size)
        fields[at] = fields[at]._replace(value=value)


def identity(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """In a span: an id of its trace, its own or its parent's that is nobody's."""
    ids = [at for at, f in enumerate(fields) if f.wire == DELIMITED and f.number in _IDS]
    if ids:
        at = random.choice(ids)
        size = random.choice((0, 7, 8, 9, 15, 16, 17, len(fields[at].value)))
        value = bytes(size) if random.random() < 0.4 else random.randbytes(size)
        fields[at] = fields[at]._replace(value=value)


def shorten(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    at = _which(random, fields, DELIMITED)
    if at is not None and fields[at].value:
        value = fields[at].value
        fields[at] = fields[at]._replace(value=value[: random.randrange(len(value))])


def duplicate(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    if fields:
        many = random.choice((1, 1, 2, 50))
        fields[_place(random, fields) : 0] = [random.choice(fields)] * many


def drop(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    if fields:
        del fields[random.randrange(len(fields))]


def reorder(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    random.shuffle(fields)


def alias(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """One has the value of another: a span is its own parent, two spans have one id."""
    one, other = _which(random, fields, DELIMITED), _which(random, fields, DELIMITED)
    if one is not None and other is not None:
        fields[one] = fields[one]._replace(value=fields[other].value)


def renumber(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    at = _which(random, fields, VARINT, FIXED64, FIXED32, DELIMITED)
    if at is not None:
        number = random.choice((0, 1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 16, 1_000, 2**29 - 1, 2**29))
        fields[at] = fields[at]._replace(number=number)


def retype(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    if fields:
        at = random.randrange(len(fields))
        fields[at] = fields[at]._replace(wire=random.randrange(8))


def splice(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """A part of another request, mostly from another level."""
    _, theirs = _somewhere(random.choice(others), random)
    if theirs:
        fields.insert(_place(random, fields), random.choice(theirs))


def unknown(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """What a later version of OTLP may add."""
    number = random.choice((6, 17, 99, 1_000, 19_500, 2**29 - 1))
    wire = random.choice((VARINT, FIXED64, FIXED32, DELIMITED))
    value = {VARINT: varint(random.getrandbits(60)), FIXED64: bytes(8), FIXED32: bytes(4)}
    added = Field(number, wire, value.get(wire, random.randbytes(6)))
    fields.insert(_place(random, fields), added)


def huge_varint(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    at = _which(random, fields, VARINT)
    number = random.choice((2**31, 2**32, 2**63, 2**64 - 1, 2**64, 2**70, 2**200, 0))
    value = varint(number)
    if random.random() < 0.4:  # longer than it need be
        value = value[:-1] + bytes((value[-1] | 0x80,)) + b"\x80" * random.randint(0, 9) + b"\0"
    changed = Field(random.choice((3, 6, 10)), VARINT, value)
    if at is None:
        fields.insert(_place(random, fields), changed)
    else:
        fields[at] = fields[at]._replace(value=value)


def stamp(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """Instants before and after all time."""
    at = _which(random, fields, FIXED64)
    if at is not None:
        value = random.choice(_INSTANTS).to_bytes(8, "little")
        fields[at] = fields[at]._replace(value=value)


def lie(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """A size that is not that of what follows."""
    at = _which(random, fields, DELIMITED)
    if at is not None:
        value = fields[at].value
        size = random.choice((0, len(value) + 1, len(value) - 1, 2**31, 2**32 - 1, 2**63, 2**64))
        tag = varint(fields[at].number << 3 | DELIMITED)
        fields[at] = junk(tag + varint(max(0, size)) + value)


def overlong(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """A tag or a size in more bytes than it needs, which is allowed up to a point."""
    at = _which(random, fields, DELIMITED)
    if at is not None:
        value, more = fields[at].value, b"\x80" * random.randint(0, 10) + b"\0"
        tag, size = varint(fields[at].number << 3 | DELIMITED), varint(len(value))
        if random.random() < 0.5:
            tag = tag[:-1] + bytes((tag[-1] | 0x80,)) + more
        else:
            size = size[:-1] + bytes((size[-1] | 0x80,)) + more
        fields[at] = junk(tag + size + value)


def text(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """Text that is not UTF-8."""
    at = _which(random, fields, DELIMITED)
    if at is not None:
        value, bad = fields[at].value, random.choice(_NOT_UTF8)
        cut = random.choice((0, len(value), random.randint(0, len(value))))
        fields[at] = fields[at]._replace(value=value[:cut] + bad + value[cut:])


def group(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """What protobuf had before messages in messages: matched, not matched, and deep."""
    number, depth = random.choice((1, 2, 7, 9, 40)), random.choice((1, 1, 2, 99, 100, 101, 2_000))
    start, end = varint(number << 3 | GROUP), varint(number << 3 | END)
    inside = random.choice((b"", varint(8) + b"\1", joined(fields[:1])))
    ends = random.choice((depth, depth, depth, depth - 1, depth + 1))
    fields.insert(_place(random, fields), junk(start * depth + inside + end * ends))


def nest(random: Random, fields: list[Field], others: Sequence[bytes]) -> None:
    """An attribute that goes deep, near to what parsers take and beyond it."""
    value = joined([Field(1, DELIMITED, b"inmost")])
    for _ in range(random.choice(_DEPTHS)):
        if random.random() < 0.5:
            value = joined([Field(5, DELIMITED, joined([Field(1, DELIMITED, value)]))])
        else:
            pair = [Field(1, DELIMITED, b"k"), Field(2, DELIMITED, value)]
            value = joined([Field(6, DELIMITED, joined([Field(1, DELIMITED, joined(pair))]))])
    pair = [Field(1, DELIMITED, names.GEN_AI_OPERATION_NAME.encode()), Field(2, DELIMITED, value)]
    number = random.choice((9, 9, 9, 1, 3, 4))
    fields.insert(_place(random, fields), Field(number, DELIMITED, joined(pair)))


MUTATIONS: Final[Sequence[Mutation]] = (
    flip,
    resize,
    identity,
    identity,
    shorten,
    duplicate,
    drop,
    reorder,
    alias,
    renumber,
    retype,
    splice,
    splice,
    unknown,
    huge_varint,
    stamp,
    lie,
    overlong,
    text,
    group,
    nest,
)

# ── Of bytes ─────────────────────────────────────────────────────────────────────────────────────


def _flip_bytes(random: Random, request: bytes) -> bytes:
    changed = bytearray(request)
    for _ in range(random.choice((1, 2, 8)) if changed else 0):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _cut_off(random: Random, request: bytes) -> bytes:
    return request[: random.randint(0, len(request))]


def _cut_out(random: Random, request: bytes) -> bytes:
    at = random.randint(0, len(request))
    return request[:at] + request[at + random.choice((1, 2, 4, 40)) :]


def _put_in(random: Random, request: bytes) -> bytes:
    at = random.randint(0, len(request))
    return request[:at] + random.randbytes(random.choice((1, 2, 4, 40))) + request[at:]


def _noise(random: Random, request: bytes) -> bytes:
    return random.randbytes(random.randint(0, 60))


BYTEWISE: Final = (_flip_bytes, _cut_off, _cut_out, _put_in, _noise)
