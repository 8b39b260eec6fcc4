"""The file that a history of clocks is kept in: lines of JSON, one a pair, and what they must be.

    {"llmlat_clock_history": 1, "crc32": ...}                   the version, a sum of what follows
{"pairs": 2, "window_ns": 120000000000, ...}                what was assumed and counted, steps
{"first": "gpu-1", "second": "laptop", "epochs": [...], ...}
{"first": "gpu-2", ...}

Bounds are 48 bytes each, little-endian: instant, limit, and the ids of trace and both spans; a side
of a window is a text of them in base64.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from zlib import crc32

from llmlat_processor.clock_history.cones import Bound, packed, unpacked
from llmlat_processor.clock_history.epoch import Epoch, Window
from llmlat_processor.clock_history.evidence import Evidence
from llmlat_processor.clock_history.fields import Fields
from llmlat_processor.clock_history.history import ClockHistory
from llmlat_processor.clock_history.pair import Became, Held, Pair
from llmlat_processor.clock_history.settings import DEFAULTS, HistorySettings
from llmlat_processor.model.clock_history import Step, Witness

VERSION: Final = 1
FORMAT: Final = "llmlat_clock_history"


class NotAHistoryError(ValueError):
    """What was read is no history of clocks that can be used; the message says why."""


def to_bytes(history: ClockHistory) -> bytes:
    """Write a history; the same one gives the same bytes."""
    head = {
        "pairs": len(history.known),
        "window_ns": history.settings.window_ns,
        "drift_ppm": history.settings.drift_ppm,
        "evicted": history.evicted,
        "became": {kind.value: history.became[kind] for kind in Became},
        "steps": [_step(step) for step in history.steps],
    }
    pairs = (_pair(pair) for pair in history.known.values())
    rest = b"".join(map(_line, (head, *pairs)))
    return _line({FORMAT: VERSION, "crc32": crc32(rest)}) + rest


def from_bytes(content: bytes, settings: HistorySettings = DEFAULTS) -> ClockHistory:
    """Read a history.

    Args:
        content: of `to_bytes`.
        settings: those of the history; its window and drift must be those that it was made with.

    Raises:
        NotAHistoryError: it is something else, is damaged, or was made with other assumptions.
    """
    first, _, rest = content.partition(b"\n")
    try:
        seal = Fields.of_json(first)
        version, total = seal.number(FORMAT), seal.number("crc32")
    except ValueError:
        raise NotAHistoryError("it is no clock history") from None
    if version != VERSION:
        raise NotAHistoryError(f"it is of version {version}; this program reads {VERSION}")
    if total != crc32(rest):
        raise NotAHistoryError("it is damaged: its lines do not add up to the sum in the first one")
    head, *pairs = rest.splitlines() or [b""]
    try:
        return _history(Fields.of_json(head), pairs, settings)
    except NotAHistoryError:
        raise
    except (ValueError, struct.error) as error:
        raise NotAHistoryError(f"it is damaged: {error}") from error


def _line(written: Mapping[str, object]) -> bytes:
    return json.dumps(written, separators=(",", ":")).encode() + b"\n"


def _history(head: Fields, lines: Sequence[bytes], settings: HistorySettings) -> ClockHistory:
    made = (head.number("window_ns"), head.number("drift_ppm"))
    if made != (settings.window_ns, settings.drift_ppm):
        raise NotAHistoryError(
            f"it was made with windows of {made[0] / 1e9:g} s and {made[1]} ppm, "
            f"not {settings.window_ns / 1e9:g} s and {settings.drift_ppm} ppm"
        )
    history = ClockHistory(settings)
    history.evicted = head.number("evicted")
    became = head.part("became")
    counts = ((kind, became.number(kind.value)) for kind in Became)
    history.became.update({kind: count for kind, count in counts if count})
    for step in head.parts("steps"):
        history.put_step(_read_step(step))
    for line in lines:
        pair = _read_pair(Fields.of_json(line), settings)
        history.put((pair.first, pair.second), pair)
    if len(lines) != head.number("pairs"):
        raise ValueError("pairs are missing")
    return history


def _pair(pair: Pair) -> dict[str, object]:
    return {
        "first": pair.first,
        "second": pair.second,
        "services": pair.services,
        "behind": pair.behind,
        "epochs": [_epoch(epoch) for epoch in pair.epochs],
        "held": [
            {"trace": one.trace_id.hex(), **_evidence(one.evidence(pair.settings.drift_ppm))}
            for one in pair.held
        ],
    }


def _read_pair(line: Fields, settings: HistorySettings) -> Pair:
    pair = Pair(line.text("first"), line.text("second"), settings)
    first, second = line.rows("services")
    pair.services = (first, second)
    pair.behind = line.number("behind")
    *former, pair.epoch = (_read_epoch(each, settings) for each in line.parts("epochs"))
    pair.former = former[-1] if former else None
    pair.held = tuple(
        Held.of(bytes.fromhex(each.text("trace")), _read_evidence(each, settings))
        for each in line.parts("held")
    )
    return pair


def _epoch(epoch: Epoch) -> dict[str, object]:
    return {
        "number": epoch.number,
        "since_ns": epoch.since_ns,
        "until_ns": epoch.until_ns,
        "seconds": [_packed([bound] if bound else []) for bound in epoch.seconds],
        "windows": [
            {"number": window.number, "traces": window.traces, **_evidence(window.evidence)}
            for window in epoch.windows
        ],
    }


def _read_epoch(written: Fields, settings: HistorySettings) -> Epoch:
    epoch = Epoch(written.number("number"), written.number("since_ns"), settings)
    epoch.until_ns = written.number("until_ns")
    above, below = (next(_unpacked(each), None) for each in written.texts("seconds"))
    epoch.seconds = (above, below)
    for each in written.parts("windows"):
        window = Window(each.number("number"), _read_evidence(each, settings))
        window.traces = each.number("traces")
        epoch.windows.append(window)
    return epoch


def _evidence(evidence: Evidence) -> dict[str, object]:
    return {
        "messages": evidence.messages,
        "above": _packed(evidence.above),
        "below": _packed(evidence.below),
    }


def _read_evidence(written: Fields, settings: HistorySettings) -> Evidence:
    evidence = Evidence(settings.drift_ppm)
    evidence.messages = written.number("messages")
    for side, name in ((evidence.above, "above"), (evidence.below, "below")):
        # Each goes through the same door as new ones do, so that what is read is always in order.
        for bound in _unpacked(written.text(name)):
            side.add(bound, settings.bounds)
    if not evidence.instants_ns():
        raise ValueError("evidence without a bound")
    return evidence


def _packed(bounds: Iterable[Bound]) -> str:
    return b64encode(packed(bounds)).decode()


def _unpacked(text: str) -> Iterator[Bound]:
    return unpacked(b64decode(text, validate=True))


def _step(step: Step) -> dict[str, object]:
    return {
        "first": step.first,
        "second": step.second,
        "amount_ns": step.amount_ns,
        "after_ns": step.after_ns,
        "by_ns": step.by_ns,
        "before": [[each.hex() for each in witness] for witness in step.before],
        "since": [[each.hex() for each in witness] for witness in step.since],
    }


def _read_step(written: Fields) -> Step:
    return Step(
        written.text("first"),
        written.text("second"),
        written.number("amount_ns"),
        written.number("after_ns"),
        written.number("by_ns"),
        _read_witnesses(written, "before"),
        _read_witnesses(written, "since"),
    )


def _read_witnesses(written: Fields, name: str) -> tuple[Witness, ...]:
    ids = [[bytes.fromhex(each) for each in ids] for ids in written.rows(name)]
    return tuple(Witness(trace, left, arrived) for trace, left, arrived in ids)
