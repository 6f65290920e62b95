"""A process that competes with others for one warehouse: it reads an account, and replaces it.

`python competing_writer.py PLACE NAME COUNT` makes so many transactions, each under a key of its
own, and prints what it has seen and done as lines of JSON. After half of them it waits for a line
of standard input, or its end.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import corollary
from corollary.core.states import State
from corollary.database.database import Database
from corollary.database.pending_commit import DeferredOperations
from corollary.database.transaction import Transaction
from corollary.database.writing.operations import Operation
from corollary.errors import ConflictError

TEXT = """
.decl account(name: symbol, balance: number) key(name)
.decl entry(writer: symbol, number: number, before: number) key(writer, number)
.decl entries(n: number)
entries(n) :- n = count : { entry(_, _, _) }.
.decl after(balance: number)
after(b + 1) :- entry(_, _, b).
"""
ACCOUNT = "till"


def raise_balance(db: Database, writer: str, number: int) -> Transaction:
    """Commit a transaction that adds one to what the account holds when it is committed."""

    def read() -> DeferredOperations:
        (balance,) = (row[1] for row in db.relation("account").rows() if row[0] == ACCOUNT)
        return DeferredOperations(
            [
                Operation(State.REMOVED, "account", [(ACCOUNT, balance)]),
                Operation(State.ADDED, "account", [(ACCOUNT, balance + 1)]),
                Operation(State.ADDED, "entry", [(writer, number, balance)]),
            ],
            {},
        )

    tx = db.transaction(idempotency=f"{writer} {number}")
    tx.read(read)
    tx.commit()
    return tx


def main(place: str, writer: str, count: int) -> None:
    """Make transactions, each again until it is through."""
    db = corollary.open(place)
    for number in range(count):
        if number == count // 2:
            sys.stdin.readline()
        conflicts = 0
        while True:
            try:
                tx = raise_balance(db, writer, number)
            except ConflictError as error:
                conflicts += error.exit_code == 4
            else:
                break
        said: dict[str, Any] = {"number": number, "commit": tx.commit_number}
        print(json.dumps({**said, "conflicts": conflicts}), flush=True)
    db.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
