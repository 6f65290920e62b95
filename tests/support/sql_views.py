"""Single SQL views, lowered to rules and maintained under random changes, beside DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb

import corollary
from corollary.core.printer import print_program
from corollary.core.program import Declaration, Program
from corollary.core.types import Kind, Type
from corollary.frontends.datalog import parse
from corollary.frontends.sql.catalog import catalog_of
from corollary.frontends.sql.lowering.queries import LoweredView, lower_view
from corollary.source import SourceFile
from support.query_text import bind_text

Row = tuple[Any, ...]

DECLARATIONS = """
.decl t(k: number, a: number?, s: symbol?) key(k)
.decl u(a: number?, b: number?) bag
.decl p(x: number, y: number, z: number?) key(x, y)
.decl w(a: number?, f: float?, d: decimal(10,2)?, c: bool?) bag
.decl e(src: number, dst: number) key(src, dst)
.decl emp(id: number, up: number?, name: symbol?) key(id)
.decl bom(part: number, sub: number, qty: number) key(part, sub)
"""
PROGRAM = parse(SourceFile("tables.dl", DECLARATIONS))
CATALOG = catalog_of(PROGRAM)
TABLES: dict[str, Declaration] = {each.name: each for each in PROGRAM.declarations}
TYPES: dict[str, tuple[Type, ...]] = {
    name: tuple(column.type for column in CATALOG.find(name)[0].columns) for name in TABLES
}
ASCENDING = {"e": (0, 1), "emp": (1, 0), "bom": (0, 1)}
"""Tables without cycles: the first of two columns is less than the second, or null."""


def lowered_view(query: str, *, is_materialized: bool = True) -> LoweredView:
    """Return the view `v` of a query over the tables."""
    return lower_view("v", bind_text(query, catalog=CATALOG), is_materialized=is_materialized)


def rules_of(view: LoweredView) -> str:
    """Return the declarations and rules of a view as text."""
    return print_program(Program(declarations=view.declarations, clauses=view.clauses))


class _Tables:
    """The contents of the tables, changed at random."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.rows: dict[str, Counter[Row]] = {name: Counter() for name in TABLES}

    def change(self) -> Iterator[tuple[str, list[Row], list[Row]]]:
        """Change all tables, and yield the rows that each loses and gets."""
        for name in TABLES:
            present = list(self.rows[name].elements())
            gone = self.random.sample(present, min(len(present), self.random.randrange(3)))
            self.rows[name].subtract(gone)
            self.rows[name] += Counter()
            few, many = (0, 3) if present else (2, 9)
            came = [row for _ in range(self.random.randrange(few, many)) for row in self._new(name)]
            yield name, gone, came

    def _new(self, name: str) -> list[Row]:
        row = tuple(self._value(type_) for type_ in TYPES[name])
        low, high = ASCENDING.get(name, (None, None))
        if low is not None and high is not None and row[low] is not None and row[low] >= row[high]:
            return []
        columns = [column.name for column in TABLES[name].columns]
        key = [columns.index(column) for column in TABLES[name].key]
        if key and any(
            [each[at] for at in key] == [row[at] for at in key] for each in self.rows[name]
        ):
            return []
        self.rows[name][row] += 1
        return [row]

    def _value(self, type_: Type) -> Any:
        if type_.nullable and self.random.random() < 0.25:
            return None
        match type_.kind:
            case Kind.NUMBER:
                return self.random.randrange(5)
            case Kind.SYMBOL:
                return self.random.choice(["a", "b", "ab", ""])
            case Kind.FLOAT:
                return self.random.choice([0.5, 1.0, 2.25])
            case Kind.DECIMAL:
                return Decimal(self.random.randrange(500)).scaleb(-2)
            case _:
                return self.random.random() < 0.5


def judge_view(
    query: str, seed: str, *, changes: int = 3, is_materialized: bool = True
) -> tuple[Counter[Row], Counter[Row]]:
    """Maintain a view under random changes, and return what is missing and what is too much.

    The first difference ends it; both are empty if there is none.
    """
    tables = _Tables(seed)
    db = corollary.open(None, engine="local")
    view = lowered_view(query, is_materialized=is_materialized)
    db.load(text=DECLARATIONS + rules_of(view))
    with duckdb.connect() as other:
        other.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name, types in TYPES.items():
            columns = zip(TABLES[name].columns, types, strict=True)
            listed = ", ".join(f"{column.name} {_duckdb_type(type_)}" for column, type_ in columns)
            other.execute(f"CREATE TABLE {name} ({listed})")
        for _ in range(changes + 1):
            with db.transaction() as tx:
                for name, gone, came in tables.change():
                    tx.delete(name, gone)
                    tx.insert(name, came)
            for name, rows in tables.rows.items():
                other.execute(f"DELETE FROM {name}")
                marks = ", ".join("?" for _ in TYPES[name])
                if rows:
                    every = list(rows.elements())
                    other.executemany(f"INSERT INTO {name} VALUES ({marks})", every)
            expected = Counter(map(_rounded, other.execute(query).fetchall()))
            found = Counter(map(_rounded, db.relation("v").rows()))
            if expected != found:
                return expected - found, found - expected
    return Counter(), Counter()


def _duckdb_type(type_: Type) -> str:
    names = {Kind.NUMBER: "BIGINT", Kind.SYMBOL: "VARCHAR", Kind.FLOAT: "DOUBLE"}
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return names.get(type_.kind, "BOOLEAN")


def _rounded(row: Row) -> Row:
    """Return a row whose fractions can be compared: DuckDB's mean of decimals is a double."""
    return tuple(
        round(float(each), 6) if isinstance(each, float | Decimal) else each for each in row
    )
