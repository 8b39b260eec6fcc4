"""Accounts as ropes: cut and flattened, they say the same as lists of pieces would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import Resource, Span
from llmlat_processor.stages.critical_path.account import Account, Part, Piece, cut, flatten, length
from llmlat_processor.stages.critical_path.tree import Node
from llmlat_semconv.values import Evidence, SectionLabel

_HERE = Resource({}, service="s", process="p", domain="d", weak=False)
NODES = [
    Node(Span(b"t", bytes([i]), b"", "s", 1, 0, 9, _HERE), 0, "d", leaf=True) for i in range(4)
]


def piece(node: int, size: int) -> Piece:
    return (NODES[node], SectionLabel.WORK, Evidence.DERIVED, size)


pieces = st.builds(piece, st.integers(0, 3), st.integers(0, 5))
amounts = st.integers(-2, 12)


def _with_cuts(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    accounts = st.builds(Account, st.lists(parts, max_size=4))
    return st.one_of(accounts, st.builds(cut, accounts, amounts, amounts))


ropes = st.recursive(pieces, _with_cuts, max_leaves=12)


def units(part: Part) -> list[Node]:
    """One entry per nanosecond: who answers for it. The slow and obvious way."""
    if isinstance(part, tuple):
        return [part[0]] * part[3]
    if isinstance(part, Account):
        return [node for inner in part.parts for node in units(inner)]
    return units(part.account)[part.skip_ns : part.skip_ns + part.total_ns]


@given(ropes)
def test_flattening_a_rope_says_who_answers_for_each_nanosecond(rope: Part) -> None:
    flat = list(flatten(Account([rope])))
    assert [node for found in flat for node in units(found)] == units(rope)
    assert all(found[3] > 0 for found in flat)
    assert length(rope) == len(units(rope))


@given(st.builds(Account, st.lists(ropes, max_size=4)), amounts, amounts)
def test_a_cut_takes_from_both_ends(account: Account, head: int, tail: int) -> None:
    whole = units(account)
    end = max(0, len(whole) - max(0, tail))
    assert units(cut(account, head, tail)) == whole[max(0, head) : end]


def test_a_cut_of_nothing_is_the_account_itself() -> None:
    account = Account([piece(0, 5)])
    assert cut(account, 0, 0) is account
    assert cut(account, -3, -1) is account


def test_depth_costs_no_recursion() -> None:
    rope: Part = piece(0, 7)
    for _ in range(50_000):
        rope = cut(Account([rope, piece(1, 1)]), 0, 1)
    assert list(flatten(Account([rope]))) == [piece(0, 7)]
