"""How far two accounts of one trace are apart: what late spans have changed of its paths."""

from __future__ import annotations

from collections import Counter
from typing import Final

from llmlat_processor.model import ExplainedTrace, Path

CHANGED: Final = 0.01
"""From this part of a path on, a change is worth another lane."""

_Share = tuple[bytes, str, str, str]


def change(before: ExplainedTrace, after: ExplainedTrace) -> float:
    """The largest part of a path that is not where it was, from 0 to 1 and above.

    Compared is how long each label of each service was on the path of each root. What moved from
    one to another counts once, what came or went wholly.
    """
    old, new = _shares(before), _shares(after)
    if {key[:2] for key in old} != {key[:2] for key in new}:
        return 1.0
    moved: Counter[tuple[bytes, str]] = Counter()
    whole: dict[tuple[bytes, str], int] = {}
    for shares in (old, new):
        sizes: Counter[tuple[bytes, str]] = Counter()
        for key, size in shares.items():
            sizes[key[:2]] += size
        for path, size in sizes.items():
            whole[path] = max(whole.get(path, 1), size)
    for key in old.keys() | new.keys():
        moved[key[:2]] += abs(new[key] - old[key])
    return max((size / 2 / whole[path] for path, size in moved.items()), default=0.0)


def _shares(explained: ExplainedTrace) -> Counter[_Share]:
    """Nanoseconds by root, path, label and service."""
    shares: Counter[_Share] = Counter()
    for root in explained.paths.roots:
        for name, path in (("e2e", root.e2e), ("ttft", root.ttft)):
            if path is not None:
                _add(shares, root.root.span_id, name, path)
    return shares


def _add(shares: Counter[_Share], root: bytes, name: str, path: Path) -> None:
    for section in path.sections:
        key = (root, name, section.label.value, section.span.resource.service)
        shares[key] += section.duration_ns
