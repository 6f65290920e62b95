"""A small warehouse that has something of everything; one of every format is kept for the tests.

    PYTHONPATH=src:tests python -m support.format_fixture tests/warehouse/formats

writes that of the present format, if there is none yet.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.tokens import TokenStore
from corollary.warehouse.catalog.schema import FORMAT
from support.warehouse_scenarios import store_of

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.input edge(filename="edge.csv")
edge("text", "a").
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.output link
.decl degree(x: symbol, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl sale(item: symbol, price: decimal(8, 2)) bag
.decl prices(total: decimal(20, 2))
prices(t) :- t = sum p : { sale(_, p) }.
.decl log(x: symbol, y: symbol)
+log(x, y) :- +edge(x, y).
.alert lost "lost {x} {y}" (IO=jsonlines, filename="lost.jsonl")
.decl lost(x: symbol, y: symbol)
lost(x, y) :- -edge(x, y).
.decl open()
.decl note(id: unsigned, day: date, at: timestamp, price: float, paid: bool, who: symbol?) key(id)
.decl due(id: unsigned)
due(i) :- note(i, d, _, _, _, _), d <= today().
.abort due "note {id} is due"
"""
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOTE = (2**64 - 1, date(2026, 11, 18), NOON, 0.1, True, None)
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "edge": [("a", "b"), ("b", "c"), ("text", "a")],
    "link": [("a", "b"), ("a", "c"), ("b", "c"), ("text", "a"), ("text", "b"), ("text", "c")],
    "degree": [("a", 1), ("b", 1), ("text", 1)],
    "sale": [("pen", Decimal("1.50"))] * 2 + [("pot", Decimal("20.00"))],
    "prices": [(Decimal("21.50"),)],
    "income": [(Decimal("23.00"),)],
    "log": [("a", "b"), ("b", "c"), ("c", "d"), ("text", "a")],
    "open": [()],
    "note": [NOTE],
    "due": [],
    "stock": [("pen", 3), ("pot", 0)],
    "scarce": [("pot",)],
}
COMMITS = 5


def build(place: Path, directory: Path) -> None:
    """Make the warehouse; its sources are in another directory."""
    (directory / "edge.csv").write_text("a\tb\n")
    (directory / "shop.dl").write_text(PROGRAM)
    with corollary.open(place, engine="local") as db:
        db.set_today("2026-11-17")
        db.run(directory / "shop.dl", facts=directory)
        with db.transaction(idempotency="monday") as tx:
            tx.insert("edge", [("b", "c"), ("c", "d"), ("a", "b")])
            tx.insert("sale", [("pen", Decimal("1.50"))] * 3 + [("pot", Decimal("20.00"))])
            tx.insert("open", [()])
            tx.insert("note", [NOTE])
        store_of(db).fold(db._state)
        with db.transaction() as tx:  # "a", "b" stays: the source has it, too
            tx.delete("edge", [("c", "d"), ("a", "b")])
            tx.delete("sale", [("pen", Decimal("1.50"))])
        db.sql(
            "CREATE TABLE stock (item STRING PRIMARY KEY, amount BIGINT);"
            "CREATE MATERIALIZED VIEW scarce AS SELECT item FROM stock WHERE amount < 1;"
            "CREATE MATERIALIZED VIEW income AS SELECT SUM(price) AS total FROM sale"
        )
        db.sql("INSERT INTO stock VALUES ('pen', 3), ('pot', 0)")
        db.grant("alice", "link", "scarce")
        TokenStore(store_of(db).warehouse.catalog).add("alice", AccessRole.READ)


def contents(db: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Return what the relations hold, in order."""
    return {name: sorted(db.relation(name).rows()) for name in EXPECTED}


def unpack(archive: Path, directory: Path) -> Path:
    """Return the place of the warehouse in an archive."""
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    return directory / "warehouse"


if __name__ == "__main__":
    target = Path(sys.argv[1]) / f"{FORMAT}.tar.gz"
    with tempfile.TemporaryDirectory() as made, tarfile.open(target, "x:gz") as packed:
        build(Path(made) / "warehouse", Path(made))
        packed.add(Path(made) / "warehouse", "warehouse")
