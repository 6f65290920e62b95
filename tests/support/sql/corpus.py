"""The corpus of SQL views in `tests/sql/views`, and random tables and changes for it.

A file has views of one construct; each is preceded by comments that say what it is for. A comment
may be a direction:

| direction | says |
|---|---|
| `-- not sqlite: reason` | that engine lacks it or means something else; also `spark` |
| `-- duckdb: SELECT …` | the query in that engine's words; also `sqlite`, `spark` |

A direction among the comments at the head of the file holds for all its views.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

from oracles.sql_engines import Row, SqlTable, read_tables
from support.paths import TESTS

Change: TypeAlias = dict[str, tuple[list[Row], list[Row]]]
"""By table: the rows to insert, and those to delete before."""

FOLDER = TESTS / "sql"
DIRECTION = re.compile(r"-- (not )?(duckdb|sqlite|spark): (.*)")
HEAD = re.compile(r"CREATE VIEW (\S+)\s*(?:\(([^)]*)\)\s*)?AS\b", re.IGNORECASE)

DATES = tuple(
    map(
        dt.date.fromisoformat,
        ("2025-12-31", "2026-01-31", "2026-02-28", "2026-03-01", "2024-02-29"),
    )
)
VALUES: dict[str, tuple[Any, ...]] = {
    "INT": (-1, 0, 1, 2, 3),
    "BIGINT": (-1, 0, 1, 2, 3),
    "STRING": ("", "a", "b", "ab", "A", " 2 ", "1", "äb", "a%"),
    "BINARY": (b"", b"a", b"\0", b"a\0", b"\xff", b"\x80", "äb".encode()),
    "DOUBLE": (0.0, 0.5, 1.0, 2.5, -1.75),
    "FLOAT": tuple(struct.unpack("f", struct.pack("f", each))[0] for each in (0, 0.1, -1.7, 2.5)),
    "BOOLEAN": (True, False),
    "DATE": DATES,
    "TIMESTAMP": tuple(
        dt.datetime(day.year, day.month, day.day, hour, minute, 30, tzinfo=dt.UTC)
        for day, hour, minute in zip(DATES, (0, 12, 23, 8, 12), (0, 0, 59, 5, 30), strict=True)
    ),
    "TIME": tuple(
        map(dt.time.fromisoformat, ("00:00:00", "08:05:00", "12:00:00", "23:59:59.999999"))
    ),
    "TIMESTAMP_NTZ": tuple(
        map(
            dt.datetime.fromisoformat,
            ("2026-01-31T12:00:30", "2026-01-31T00:59:30", "2026-01-30T23:59:59", "2025-12-31"),
        )
    ),
    "DECIMAL": tuple(map(Decimal, ("0.00", "1.00", "2.50", "-1.25", "1.26", "1.25", "100.05"))),
}
KEYS = tuple(range(10))
"""Of keys of one column."""
NULLS = 0.2
"""The share of nulls in columns that may be null."""


@dataclass(frozen=True)
class CorpusView:
    """A view of the corpus.

    Attributes:
        file: the name of its file, without `.sql`.
        query: in Spark's dialect.
        columns: those that the head of the view names; mostly none.
        own: the query in the words of an engine, by engine.
        absent: engines that do not have it, with the reason.
        needs: the views it reads, directly or not, in order.
    """

    file: str
    name: str
    about: str
    query: str
    columns: tuple[str, ...]
    own: Mapping[str, str]
    absent: Mapping[str, str]
    needs: tuple[CorpusView, ...] = ()

    @property
    def label(self) -> str:
        """What a test calls it."""
        return f"{self.file}-{self.name}"

    @property
    def reads(self) -> frozenset[str]:
        """The tables and views that it names, directly."""
        tree = sqlglot.parse_one(self.query, read="spark")
        return frozenset(each.name for each in tree.find_all(exp.Table))

    def statement(self, kind: str = "VIEW") -> str:
        """Return the statement that makes it: a `VIEW` or a `MATERIALIZED VIEW`."""
        listed = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"CREATE {kind} {self.name}{listed} AS {self.query};"


def read_views(text: str, file: str) -> Iterator[CorpusView]:
    """Yield the views of a file's text."""
    earlier: dict[str, CorpusView] = {}
    common: dict[str, str] = {}
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().splitlines()
        comments = [each for each in lines if each.startswith("-- ")]
        absent, own, about = dict(common), {}, []
        for each in comments:
            if (found := DIRECTION.fullmatch(each)) is None:
                about.append(each.removeprefix("-- "))
            elif found[1]:
                absent[found[2]] = found[3]
            else:
                own[found[2]] = found[3]
        statement = "\n".join(each for each in lines if not each.startswith("-- "))
        if not statement:
            common |= absent
            continue
        head = HEAD.match(statement)
        assert head, statement
        assert about, f"{head[1]} does not say what it is for"
        columns = tuple(each.strip() for each in (head[2] or "").split(",") if each.strip())
        query = statement[head.end() :].strip().removesuffix(";")
        view = CorpusView(file, head[1], " ".join(about), query, columns, own, absent)
        found_needs: dict[str, CorpusView] = {}
        named = earlier.keys() & set(re.findall(r"\w+", query))
        reads = view.reads if named else frozenset()
        for name in sorted(reads & named, key=list(earlier).index):
            found_needs |= {each.name: each for each in (*earlier[name].needs, earlier[name])}
        needs = tuple(sorted(found_needs.values(), key=lambda each: list(earlier).index(each.name)))
        view = CorpusView(file, head[1], view.about, query, columns, own, absent, needs)
        assert view.name not in earlier, view.name
        earlier[view.name] = view
        yield view


def corpus(folder: str = "views") -> tuple[CorpusView, ...]:
    """Return all views of a folder of `tests/sql`."""
    return _corpus(folder)


@cache
def _corpus(folder: str) -> tuple[CorpusView, ...]:
    paths = sorted((FOLDER / folder).glob("*.sql"))
    return tuple(each for path in paths for each in read_views(path.read_text("utf-8"), path.stem))


@cache
def corpus_tables(file: str = "tables.sql") -> dict[str, SqlTable]:
    """Return the tables that the views read."""
    return read_tables((FOLDER / file).read_text("utf-8"))


# ---------------------------------------------------------------------------------- random changes

NODES = tuple(range(6))
DOCUMENTS = (1, 2, 3)
GRAPHS: dict[str, tuple[Any, ...]] = {
    f"{name}.{column}": NODES for name in ("edge", "road", "link") for column in "xy"
} | {
    "road.cost": (1, 2, 5),
    "closed.x": NODES,
    "bom.part": NODES,
    "bom.sub": NODES,
    "bom.qty": (1, 2, 3),
    "price.part": NODES,
    "price.cents": (1, 5, 10),
    "emp.boss": KEYS,
    "emp.name": ("a", "b", "c"),
    "member.who": NODES,
    "member.team": NODES,
    "granted.team": NODES,
    "granted.doc": DOCUMENTS,
    "denied.who": NODES,
    "denied.doc": DOCUMENTS,
}
"""Values in the tables of recursive views."""


def has_no_cycle(name: str, row: Row) -> bool:
    """Whether a row of a table of recursive views goes from a lesser node to a greater one."""
    if name == "emp":
        return row[1] is None or row[1] < row[0]
    return name not in {"bom", "road", "link"} or None in row[:2] or row[0] < row[1]


class RandomTables:
    """The rows of tables, and random changes of them; small domains, so that rows meet.

    Args:
        tables: which ones.
        seed: the same seed gives the same rows and changes.
        rows: about how many rows a table has.
        values: those of a column, such as `edge.x`; usual ones of its type otherwise.
        accepts: whether a row may stand in a table.

    Attributes:
        state: the rows of each table, with their counts.
    """

    def __init__(
        self,
        tables: Mapping[str, SqlTable],
        seed: int | str,
        *,
        rows: int = 8,
        values: Mapping[str, tuple[Any, ...]] | None = None,
        accepts: Callable[[str, Row], bool] = lambda name, row: True,
    ) -> None:
        self.tables = tables
        self.random = random.Random(f"tables {seed}")
        self.rows = rows
        self.values = dict(values or {})
        self.accepts = accepts
        self.state: dict[str, Counter[Row]] = {name: Counter() for name in tables}

    def load(self) -> Change:
        """Return a first change, which fills the tables; sometimes one stays empty."""
        change: Change = {}
        for name in self.tables:
            count = self.random.randrange(self.rows // 2, self.rows + 3)
            if self.random.random() < 0.05:
                count = 0
            change[name] = ([], [])
            for _ in range(count):
                self._insert(name, change)
        return self._made(change)

    def change(self) -> Change:
        """Return another change: rows inserted, deleted and updated, in one table or several."""
        change: Change = {}
        count = min(len(self.tables), self.random.choice((1, 2, 3)))
        names = self.random.sample(sorted(self.tables), count)
        for name in names:
            change[name] = ([], [])
            for _ in range(self.random.choice((1, 1, 2, 4))):
                present = list(self.state[name].elements())
                is_full = len(present) >= self.rows
                if present and self.random.random() < (0.7 if is_full else 0.4):
                    self._delete(name, self.random.choice(present), change)
                else:
                    self._insert(name, change)
        return self._made(change)

    def _made(self, change: Change) -> Change:
        return {name: each for name, each in change.items() if any(each)}

    def _insert(self, name: str, change: Change) -> None:
        table = self.tables[name]
        row = self._row(name)
        present = list(self.state[name].elements())
        if table.key is None:
            if present and self.random.random() < 0.3:
                row = self.random.choice(present)
        else:
            key = [row[at] for at in table.key]
            same = [each for each in present if [each[at] for at in table.key] == key]
            if row in same:
                return
            for each in same:
                self._delete(name, each, change)
        inserted, deleted = change[name]
        if row in deleted:
            deleted.remove(row)
        else:
            inserted.append(row)
        self.state[name][row] += 1

    def _delete(self, name: str, row: Row, change: Change) -> None:
        inserted, deleted = change[name]
        if row in inserted:
            inserted.remove(row)
        else:
            deleted.append(row)
        self.state[name][row] -= 1
        self.state[name] = +self.state[name]

    def _row(self, name: str) -> Row:
        while True:
            row = tuple(self._value(name, at) for at in range(len(self.tables[name].columns)))
            if self.accepts(name, row):
                return row

    def _value(self, table: str, at: int) -> Any:
        column = self.tables[table].columns[at]
        if column.is_nullable and self.random.random() < NULLS:
            return None
        kind = column.type.partition("(")[0]
        is_key = self.tables[table].key == (at,) and kind == "INT"
        usual = KEYS if is_key else VALUES[kind]
        return self.random.choice(self.values.get(f"{table}.{column.name}", usual))
