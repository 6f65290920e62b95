"""SQL views by DuckDB, SQLite and Spark: what a view holds, as a bag, for given tables.

Views are written in Spark's dialect. For DuckDB and SQLite they are translated by sqlglot, and then
in a few places where the engines mean something else (section 10 of the specification):

| Spark | DuckDB | SQLite |
|---|---|---|
| `concat(a, b)` is null if one is | `a || b` | `a || b` |
| `CAST(x AS INT)` cuts off | `trunc` inside | the same, by itself |
| nulls are first in order | `NULLS FIRST` | the same, by itself |
| `LIKE` is true to case | the same | `PRAGMA case_sensitive_like` |
| `7 / 2` is 3.5 | the same | `CAST(7 AS REAL) / 2` |
| `COUNT_IF`, `BOOL_AND` | the same | written out by the test |

What is left differs by a text that the view carries. No code of the package is used here.
"""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

Row: TypeAlias = tuple[Any, ...]
State: TypeAlias = Mapping[str, Counter[Row]]

# sqlglot writes TIME as TIMESTAMP.
Spark.Generator.TYPE_MAPPING[exp.DataType.Type.TIME] = "TIME"

ARROW = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIME": pa.time64("us"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
DIGITS = 11
"""Doubles are equal if so many digits are: sums are added up in different orders."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: str
    is_nullable: bool

    @property
    def arrow(self) -> pa.DataType:
        """Its type in Arrow."""
        if self.type.startswith("DECIMAL"):
            precision, scale = self.type.removeprefix("DECIMAL(").removesuffix(")").split(",")
            return pa.decimal128(int(precision), int(scale))
        return ARROW[self.type]


@dataclass(frozen=True)
class SqlTable:
    """A table: its columns, and those of its key by number; None for a bag."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[int, ...] | None
    text: str

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as a table of Arrow."""
        listed = list(rows)
        schema = pa.schema([(each.name, each.arrow) for each in self.columns])
        columns = [[row[at] for row in listed] for at in range(len(schema))]
        return pa.Table.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)],
            schema=schema,
        )


def read_tables(text: str) -> dict[str, SqlTable]:
    """Return the tables that `CREATE TABLE` statements make."""
    found = {}
    for statement in sqlglot.parse(text, read="spark"):
        if not isinstance(statement, exp.Create) or statement.kind != "TABLE":
            continue
        schema = statement.this
        columns, keys = [], []
        for each in schema.expressions:
            if isinstance(each, exp.ColumnDef):
                kinds = [type(one.kind) for one in each.constraints]
                if exp.PrimaryKeyColumnConstraint in kinds:
                    keys.append(each.name)
                is_nullable = exp.NotNullColumnConstraint not in kinds
                kind = each.kind.sql("spark").replace(" ", "")
                columns.append(TableColumn(each.name, kind, is_nullable))
            elif isinstance(each, exp.PrimaryKey):
                keys += [one.name for one in each.expressions]
        names = [each.name for each in columns]
        columns = [
            TableColumn(each.name, each.type, each.is_nullable and each.name not in keys)
            for each in columns
        ]
        key = tuple(names.index(each) for each in keys) or None
        name = schema.this.name
        found[name] = SqlTable(name, tuple(columns), key, statement.sql("spark"))
    return found


# -------------------------------------------------------------------------------------- translation


def translated(query: str, target: str) -> str:
    """Return a query of Spark's dialect in that of `duckdb` or `sqlite`."""
    tree = sqlglot.parse_one(query, read="spark").transform(_concatenation)
    if target == "duckdb":
        tree = tree.transform(_cut_off)
    return tree.sql(dialect=target, identify=True, unsupported_level=sqlglot.ErrorLevel.RAISE)


def _concatenation(node: exp.Expression) -> exp.Expression:
    if not isinstance(node, exp.Concat):
        return node
    first, *others = node.expressions
    for other in others:
        first = exp.DPipe(this=first, expression=other, safe=True)
    return exp.paren(first, copy=False)


def _cut_off(node: exp.Expression) -> exp.Expression:
    """Cut off what is cast to an integer, which DuckDB would round."""
    is_integer = isinstance(node, exp.Cast) and node.to.this in exp.DataType.INTEGER_TYPES
    if not is_integer or isinstance(node.this, exp.Literal):
        return node
    double = exp.TryCast(this=node.this, to=exp.DataType.build("DOUBLE"))
    node.set("this", exp.Anonymous(this="trunc", expressions=[double]))
    return node


# ------------------------------------------------------------------------------------------- values


def comparable(value: Any) -> Any:
    """Return a value by which engines are compared: equal numbers are equal, times have no zone."""
    match value:
        case bool() | None | str():
            return value
        case float():
            return "NaN" if math.isnan(value) else _number(float(f"{value:.{DIGITS}g}"))
        case Decimal():
            return _number(value)
        case dt.datetime():
            return value.replace(tzinfo=None)
        case bytearray():
            return bytes(value)
        case _:
            return value


def _number(value: float | Decimal) -> Any:
    """Return a whole number as an integer, any other as a decimal without zeros behind."""
    if math.isinf(value):
        return value
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    return int(exact) if exact == int(exact) else exact.normalize()


def bag(rows: Iterable[Sequence[Any]]) -> Counter[Row]:
    """Return rows with their counts, comparable between engines."""
    return Counter(tuple(comparable(value) for value in row) for row in rows)


# ------------------------------------------------------------------------------------------ engines


class DuckdbViews:
    """Tables in DuckDB, and queries on them."""

    name = "duckdb"

    def __init__(self, tables: Mapping[str, SqlTable]) -> None:
        self.tables = tables
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute("SET TimeZone = 'UTC'")
        for table in tables.values():
            columns = ", ".join(
                f'"{each.name}" {each.type.replace("STRING", "VARCHAR").removesuffix("_NTZ")}'
                for each in table.columns
            )
            self.connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        self.kinds: dict[str, list[str]] = {}

    def fill(self, state: State) -> None:
        """Set the rows of all tables."""
        for name, table in self.tables.items():
            self.connection.execute(f'DELETE FROM "{name}"')
            if state[name]:
                self.connection.register("new_rows", table.arrow(state[name].elements()))
                self.connection.execute(f'INSERT INTO "{name}" SELECT * FROM new_rows')
                self.connection.unregister("new_rows")

    def define(
        self, name: str, query: str, columns: Sequence[str] = (), own: str | None = None
    ) -> None:
        """Make a view; `own` is the query in this engine's words."""
        text = own or translated(query, self.name)
        listed = "({})".format(", ".join(f'"{each}"' for each in columns)) if columns else ""
        self.connection.execute(f'CREATE VIEW "{name}" {listed} AS {text}')
        described = self.connection.execute(f'DESCRIBE "{name}"').fetchall()
        self.kinds[name] = [str(each[1]) for each in described]

    def rows(self, name: str) -> Counter[Row]:
        """Return what a view holds."""
        return bag(self.connection.execute(f'SELECT * FROM "{name}"').fetchall())

    def close(self) -> None:
        """Give everything back."""
        self.connection.close()


class SqliteViews:
    """Tables in SQLite, and queries on them; kinds of columns are DuckDB's."""

    name = "sqlite"

    def __init__(self, tables: Mapping[str, SqlTable]) -> None:
        self.tables = tables
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("PRAGMA case_sensitive_like = ON")
        for table in tables.values():
            columns = ", ".join(f'"{each.name}"' for each in table.columns)
            self.connection.execute(f'CREATE TABLE "{table.name}" ({columns})')

    def fill(self, state: State) -> None:
        """Set the rows of all tables."""
        for name, table in self.tables.items():
            self.connection.execute(f'DELETE FROM "{name}"')
            marks = ", ".join("?" * len(table.columns))
            rows = [tuple(map(_for_sqlite, row)) for row in state[name].elements()]
            self.connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)

    def define(
        self, name: str, query: str, columns: Sequence[str] = (), own: str | None = None
    ) -> None:
        """Make a view; `own` is the query in this engine's words."""
        text = own or translated(query, self.name)
        listed = "({})".format(", ".join(f'"{each}"' for each in columns)) if columns else ""
        self.connection.execute(f'CREATE VIEW "{name}" {listed} AS {text}')

    def rows(self, name: str, kinds: Sequence[str]) -> Counter[Row]:
        """Return what a view holds, its values of DuckDB's kinds."""
        found = self.connection.execute(f'SELECT * FROM "{name}"').fetchall()
        return bag(
            tuple(_of_kind(value, kind) for value, kind in zip(row, kinds, strict=True))
            for row in found
        )

    def close(self) -> None:
        """Give everything back."""
        self.connection.close()


def _for_sqlite(value: Any) -> Any:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case dt.date() | dt.time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case _:
            return value


def _of_kind(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "BOOLEAN":
        return bool(value)
    if kind == "DATE":
        return dt.date.fromisoformat(value)
    return value


class SparkViews:
    """Tables in Spark, and queries on them as they are written."""

    name = "spark"

    def __init__(self, session: Any, tables: Mapping[str, SqlTable]) -> None:
        self.session = session
        self.tables = tables
        self.session.conf.set("spark.sql.session.timeZone", "UTC")

    def fill(self, state: State) -> None:
        """Set the rows of all tables."""
        for name, table in self.tables.items():
            columns = ", ".join(f"`{each.name}` {each.type}" for each in table.columns)
            types = [each.type for each in table.columns]
            rows = [tuple(map(_for_spark, row, types)) for row in state[name].elements()]
            frame = self.session.createDataFrame(rows, columns)
            frame.coalesce(1).createOrReplaceTempView(name)

    def define(self, name: str, query: str, columns: Sequence[str] = ()) -> None:
        """Make a view."""
        listed = f"({', '.join(f'`{each}`' for each in columns)})" if columns else ""
        self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{name}` {listed} AS {query}")

    def rows(self, name: str) -> Counter[Row]:
        """Return what a view holds."""
        return bag(tuple(row) for row in self.session.table(name).collect())

    def types(self, name: str) -> list[str]:
        """Return the types of a view's columns."""
        return [each.dataType.simpleString() for each in self.session.table(name).schema]


def _for_spark(value: Any, type_: str) -> Any:
    is_moment = isinstance(value, dt.datetime) and type_ == "TIMESTAMP"
    return value.replace(tzinfo=dt.UTC) if is_moment else value
