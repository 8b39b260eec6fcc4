"""What the adviser knows: policies, accounts and orders, in a small database."""

from __future__ import annotations

import asyncio
import sqlite3

__all__ = ["ACCOUNT", "Stores"]

ACCOUNT = "4711"

_SCHEMA = """
CREATE TABLE policy (topic TEXT, rule TEXT);
CREATE TABLE account (id TEXT, owner TEXT, tier TEXT, since INTEGER, balance REAL);
CREATE TABLE orders (id INTEGER, account TEXT, item TEXT, quantity INTEGER, state TEXT);
"""
_POLICIES = [
    ("refund", "A refund is granted within 30 days of delivery, once for each order."),
    ("refund", "A refund above 500 euros needs the consent of a second adviser."),
    ("refund", "Orders that have not been sent are cancelled, not refunded."),
    ("refund", "A gold account is refunded before the goods have come back."),
    ("address", "An address is changed only by the owner of the account."),
]
_ORDERS = [
    (1, ACCOUNT, "desk lamp", 2, "delivered"),
    (2, ACCOUNT, "office chair", 1, "sent"),
    (3, ACCOUNT, "monitor arm", 1, "open"),
    (4, "4712", "keyboard", 1, "sent"),
]

# The queries are real and take microseconds. The pauses stand for the way to a remote store and
# back; they are the only time in this demo that is not spent on work.
_POLICY_ROUND_TRIP_S = 0.430
_ACCOUNT_ROUND_TRIP_S = 0.280
_ORDERS_ROUND_TRIP_S = 0.760


class Stores:
    """The three stores behind the adviser; each answers in plain text, one row a line."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.executescript(_SCHEMA)
        self._database.executemany("INSERT INTO policy VALUES (?, ?)", _POLICIES)
        self._database.execute(
            "INSERT INTO account VALUES (?, 'Kim', 'gold', 2019, 81.5)", [ACCOUNT]
        )
        self._database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", _ORDERS)

    async def policy(self, topic: str) -> str:
        """The rules on one topic."""
        await asyncio.sleep(_POLICY_ROUND_TRIP_S)
        return self._rows("SELECT rule FROM policy WHERE topic = ?", topic)

    async def account(self, account: str) -> str:
        """What is known of one account."""
        await asyncio.sleep(_ACCOUNT_ROUND_TRIP_S)
        return self._rows("SELECT owner, tier, since, balance FROM account WHERE id = ?", account)

    async def orders(self, account: str, limit: int) -> str:
        """The latest orders of one account."""
        await asyncio.sleep(_ORDERS_ROUND_TRIP_S)
        query = (
            "SELECT item, quantity, state FROM orders WHERE account = ? ORDER BY id DESC LIMIT ?"
        )
        return self._rows(query, account, limit)

    def _rows(self, query: str, *parameters: str | int) -> str:
        rows = self._database.execute(query, parameters)
        return "\n".join(", ".join(map(str, row)) for row in rows)
