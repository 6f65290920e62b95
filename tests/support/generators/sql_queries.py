"""Random SQL queries over tables with keys of one and two columns and none, for hypothesis.

A query is drawn as text in Spark's dialect. Columns are integers that may be null and are called
`c1`, `c2` …; sources are called `s1`, `s2` …, each name once in a query, so that every column can
be named from everywhere. Subqueries may be correlated, nested to a bounded depth; scalar ones are
aggregates, so that they have one row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TABLES = """
CREATE TABLE one_key (k INT PRIMARY KEY, a INT, b INT);
CREATE TABLE two_keys (x INT, y INT, q INT, PRIMARY KEY (x, y));
CREATE TABLE copies (a INT, b INT);
CREATE TABLE filled (a INT NOT NULL, b INT);
"""
COLUMNS = {
    "one_key": ("k", "a", "b"),
    "two_keys": ("x", "y", "q"),
    "copies": ("a", "b"),
    "filled": ("a", "b"),
}
COMPARISONS = ("=", "<", "<>", ">=", "<=>")
JOINS = (
    *("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"),
    *("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)
SET_OPERATIONS = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
AGGREGATES = (
    "COUNT({})",
    "SUM({})",
    "MIN({})",
    "MAX({})",
    "COUNT(DISTINCT {})",
    "SUM(DISTINCT {})",
)
WINDOWS = (
    "SUM({0}) OVER (PARTITION BY {1})",
    "COUNT(*) OVER (PARTITION BY {1})",
    "RANK() OVER (PARTITION BY {0} ORDER BY {1})",
    "DENSE_RANK() OVER (ORDER BY {0}, {1} DESC)",
    "SUM({0}) OVER (ORDER BY {1})",
)
BULK_MODES = ("auto", "always")
"""With as few rows as here, `auto` is `never`."""

Names = list[str]


@dataclass(frozen=True)
class SqlScenario:
    """A query, and how tables are filled and changed under it."""

    query: str
    seed: int
    rows: int
    changes: int
    is_stored: bool
    bulk: str
    features: frozenset[str] = field(compare=False)


class _Writer:
    """Draws the parts of one query."""

    def __init__(self, draw: Callable[[st.SearchStrategy], object]) -> None:
        self._draw = draw
        self._numbers = count(1)
        self.features: set[str] = set()

    def pick(self, choices: Sequence[str]) -> str:
        """Return one of some texts; examples shrink to the first."""
        return str(self._draw(st.sampled_from(choices)))

    def chance(self, one_in: int) -> bool:
        """Return true one time in so many; examples shrink to false."""
        return self._draw(st.integers(0, one_in - 1)) == one_in - 1

    def number(self, least: int, most: int) -> int:
        """Return a number; examples shrink to the least."""
        return int(self._draw(st.integers(least, most)))  # type: ignore[call-overload]

    # ------------------------------------------------------------------------------------- queries

    def query(self, width: int, depth: int, outer: Names) -> str:
        """Return a query with so many columns, called `c1` …."""
        if depth and self.chance(4):
            operation = self.pick(SET_OPERATIONS)
            self.features.add(operation)
            left, right = (self.query(width, depth - 1, outer) for _ in range(2))
            one, two = next(self._numbers), next(self._numbers)
            return f"SELECT * FROM ({left}) s{one} {operation} SELECT * FROM ({right}) s{two}"
        if self.chance(3):
            return self.grouped(width, depth, outer)
        return self.block(width, depth, outer)

    def block(self, width: int, depth: int, outer: Names) -> str:
        """Return a query that is not grouped."""
        source, columns = self.sources(depth, outer)
        items = [self.value(columns, depth, outer) for _ in range(width)]
        if self.chance(10):
            self.features.add("window")
            form = self.pick(WINDOWS)
            items[-1] = form.format(self.pick(columns), self.pick(columns))
        listed = ", ".join(f"{item} AS c{at}" for at, item in enumerate(items, 1))
        distinct = "DISTINCT " if self.chance(5) else ""
        return f"SELECT {distinct}{listed} FROM {source}{self.where(columns, depth, outer)}"

    def grouped(self, width: int, depth: int, outer: Names) -> str:
        """Return a query with `GROUP BY`, or one of a single group."""
        self.features.add("group")
        source, columns = self.sources(depth, outer)
        keys = list(dict.fromkeys(self.pick(columns) for _ in range(self.number(0, 2))))
        items = []
        for _ in range(width):
            if keys and self.chance(2):
                items.append(self.pick(keys))
            else:
                items.append(self.aggregate(columns))
        listed = ", ".join(f"{item} AS c{at}" for at, item in enumerate(items, 1))
        text = f"SELECT {listed} FROM {source}{self.where(columns, depth, outer)}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if self.chance(4):
            self.features.add("having")
            comparison = self.pick(COMPARISONS)
            text += f" HAVING {self.aggregate(columns)} {comparison} {self.number(0, 3)}"
        return text

    def aggregate(self, columns: Names) -> str:
        """Return an aggregate."""
        if self.chance(4):
            return "COUNT(*)"
        form = self.pick(AGGREGATES)
        text = form.format(self.pick(columns))
        if self.chance(6):
            self.features.add("filter")
            condition = f"{self.pick(columns)} {self.pick(COMPARISONS)} {self.number(0, 2)}"
            text += f" FILTER (WHERE {condition})"
        return text

    def where(self, columns: Names, depth: int, outer: Names) -> str:
        """Return a condition of rows, or nothing."""
        if self.chance(2):
            return f" WHERE {self.condition(columns, depth, outer)}"
        return ""

    # ------------------------------------------------------------------------------------- sources

    def sources(self, depth: int, outer: Names) -> tuple[str, Names]:
        """Return what stands behind FROM, and the columns that it has."""
        text, columns = self.source(depth, outer)
        for _ in range(self.number(0, 2)):
            other, further = self.source(depth, outer)
            kind = self.pick(JOINS)
            self.features.add(kind)
            left, right = self.pick(columns), self.pick(further)
            comparison = self.pick(("=", "=", "=", "<=>", "<"))
            condition = f"{left} {comparison} {right}"
            if self.chance(4):
                condition += f" {self.pick(('AND', 'OR'))} {self.pick([*columns, *further])} > 0"
            text += f" {kind} {other} ON {condition}"
            if kind not in {"LEFT SEMI JOIN", "LEFT ANTI JOIN"}:
                columns = columns + further
        return text, columns

    def source(self, depth: int, outer: Names) -> tuple[str, Names]:
        """Return a table or a subquery with its name, and its columns."""
        if depth and self.chance(3):
            self.features.add("derived")
            width = self.number(1, 2)
            text = self.query(width, depth - 1, [])
            name = f"s{next(self._numbers)}"
            return f"({text}) {name}", [f"{name}.c{at}" for at in range(1, width + 1)]
        table = self.pick(tuple(COLUMNS))
        name = f"s{next(self._numbers)}"
        return f"{table} {name}", [f"{name}.{each}" for each in COLUMNS[table]]

    # --------------------------------------------------------------------- conditions and values

    def condition(self, columns: Names, depth: int, outer: Names, nested: int = 2) -> str:
        """Return a condition."""
        kinds = ["compare", "constant", "null", "list"]
        if nested:
            kinds += ["and", "or", "not"]
        if depth:
            kinds += ["exists", "in", "in", "scalar"]
        kind = self.pick(kinds)
        self.features.add(kind)
        one = self.pick(columns)
        negation = self.pick(("", "NOT "))
        match kind:
            case "compare":
                others = columns + outer if self.chance(2) else columns
                return f"{one} {self.pick(COMPARISONS)} {self.pick(others)}"
            case "constant":
                return f"{one} {self.pick(COMPARISONS)} {self.number(0, 3)}"
            case "null":
                return f"{one} IS {negation}NULL"
            case "list":
                return f"{one} {negation}IN ({self.number(0, 1)}, {self.number(1, 3)})"
            case "and" | "or":
                left, right = (self.condition(columns, depth, outer, nested - 1) for _ in "12")
                return f"({left} {kind.upper()} {right})"
            case "not":
                return f"NOT ({self.condition(columns, depth, outer, nested - 1)})"
            case "exists":
                return f"{negation}EXISTS ({self.correlated(1, depth, columns + outer)})"
            case "in":
                return f"{one} {negation}IN ({self.correlated(1, depth, columns + outer)})"
            case _:
                return f"{one} {self.pick(COMPARISONS)} {self.scalar(depth, columns + outer)}"

    def correlated(self, width: int, depth: int, outer: Names) -> str:
        """Return a subquery over one table that may compare with columns around it."""
        if self.chance(4):
            return self.query(width, depth - 1, [])
        source, columns = self.sources(depth - 1, [])
        conditions = [f"{self.pick(columns)} {self.pick(('=', '<', '<=>'))} {self.pick(outer)}"]
        if self.chance(3):
            conditions.append(self.condition(columns, depth - 1, outer, 1))
        items = ", ".join(f"{self.pick(columns)} AS c{at}" for at in range(1, width + 1))
        return f"SELECT {items} FROM {source} WHERE {' AND '.join(conditions)}"

    def scalar(self, depth: int, outer: Names) -> str:
        """Return a subquery with one row."""
        self.features.add("scalar")
        source, columns = self.sources(depth - 1, [])
        condition = ""
        if self.chance(2):
            condition = f" WHERE {self.pick(columns)} {self.pick(('=', '<'))} {self.pick(outer)}"
        return f"(SELECT {self.aggregate(columns)} FROM {source}{condition})"

    def value(self, columns: Names, depth: int, outer: Names) -> str:
        """Return an expression of integers."""
        kinds = ["column", "column", "column", "plus", "sum", "coalesce", "case", "constant"]
        if depth:
            kinds.append("scalar")
        one = self.pick(columns)
        match self.pick(kinds):
            case "column":
                return one
            case "plus":
                return f"{one} + {self.number(1, 2)}"
            case "sum":
                return f"{one} - {self.pick(columns)}"
            case "coalesce":
                return f"COALESCE({one}, {self.pick(columns)}, 0)"
            case "case":
                condition = self.condition(columns, 0, outer, 1)
                return f"CASE WHEN {condition} THEN {one} ELSE {self.number(0, 1)} END"
            case "scalar":
                return self.scalar(depth, columns)
            case _:
                return str(self.number(0, 2))


@st.composite
def sql_scenarios(draw: Callable[[st.SearchStrategy], object], depth: int = 2) -> SqlScenario:
    """Draw a query over `TABLES`, and how they change under it."""
    writer = _Writer(draw)
    query = writer.query(writer.number(1, 3), depth, [])
    return SqlScenario(
        query,
        seed=writer.number(0, 9_999),
        rows=writer.number(3, 8),
        changes=writer.number(1, 4),
        is_stored=not writer.chance(4),
        bulk=writer.pick(BULK_MODES),
        features=frozenset(writer.features),
    )
