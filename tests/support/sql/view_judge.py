"""SQL views, maintained by the package and judged by other engines after every change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import corollary
from corollary.core.arrow import to_python
from oracles.sql_engines import DuckdbViews, Row, SqliteViews, SqlTable, State, bag
from support.sql.corpus import Change, CorpusView, RandomTables

MATERIALIZED, VIRTUAL = "MATERIALIZED VIEW", "VIEW"
KINDS = (MATERIALIZED, VIRTUAL)


class SqlOracles:
    """The views by DuckDB and SQLite, which have to agree where both have one."""

    def __init__(self, tables: Mapping[str, SqlTable], views: Iterable[CorpusView]) -> None:
        self.duckdb, self.sqlite = DuckdbViews(tables), SqliteViews(tables)
        self.views = {each.name: each for each in views}
        for view in self.views.values():
            for engine in (self.duckdb, self.sqlite):
                if engine.name not in view.absent:
                    engine.define(view.name, view.query, view.columns, view.own.get(engine.name))

    def fill(self, state: State) -> None:
        """Set the rows of all tables."""
        self.duckdb.fill(state)
        self.sqlite.fill(state)

    def rows(self, name: str) -> Counter[Row]:
        """Return what a view holds, on which the engines agree."""
        view = self.views[name]
        found = self.duckdb.rows(name)
        if self.sqlite.name not in view.absent:
            other = self.sqlite.rows(name, self.duckdb.kinds[name])
            assert other == found, (
                f"DuckDB and SQLite differ on {view.label}: "
                f"{dict(found - other)} against {dict(other - found)}"
            )
        return found

    def close(self) -> None:
        """Give everything back."""
        self.duckdb.close()
        self.sqlite.close()


class MaintainedViews:
    """The same views in a database of the package.

    In a warehouse (`place`), the database is opened anew for every transaction, so that the views
    come from the program as it was printed.
    """

    def __init__(
        self,
        tables: Mapping[str, SqlTable],
        views: Iterable[CorpusView],
        kind: str = MATERIALIZED,
        place: str | None = None,
        **options: Any,
    ) -> None:
        self.views = list(views)
        self.kind = kind
        self._open = partial(corollary.open, place, **{"engine": "local", **options})
        self._is_lasting = place is not None
        self.database = self._open()
        statements = [f"{each.text};" for each in tables.values()]
        statements += [each.statement(kind) for each in self.views]
        self.database.sql("\n".join(statements))
        self.held = {each.name: self.rows(each.name) for each in self.views}

    def apply(self, change: Change) -> None:
        """Make one transaction; what it reports must be the difference."""
        if self._is_lasting:
            self.database.close()
            self.database = self._open()
        with self.database.transaction() as transaction:
            for name, (_, deleted) in change.items():
                if deleted:
                    transaction.delete(name, deleted)
            for name, (inserted, _) in change.items():
                if inserted:
                    transaction.insert(name, inserted)
        for view in self.views:
            now = self.rows(view.name)
            if self.kind == MATERIALIZED:
                reported = transaction.changes[view.name]
                added = bag(to_python(reported.added))
                removed = bag(to_python(reported.removed))
                assert (added, removed) == (now - self.held[view.name], self.held[view.name] - now)
            self.held[view.name] = now

    def rows(self, name: str) -> Counter[Row]:
        """Return what a view holds."""
        return bag(self.database.relation(name).rows())

    def answer(self, view: CorpusView) -> Counter[Row]:
        """Return the rows of a view's query, asked as a question."""
        return bag(self.database.sql(view.query).rows())

    def close(self) -> None:
        """Give everything back."""
        self.database.close()


def judge_views(
    tables: Mapping[str, SqlTable],
    views: Iterable[CorpusView],
    seed: int | str,
    *,
    kind: str = MATERIALIZED,
    changes: int = 5,
    values: Mapping[str, tuple[Any, ...]] | None = None,
    accepts: Callable[[str, Row], bool] = lambda name, row: True,
    **options: Any,
) -> int:
    """Compare views after the load and after every change; return how many of them held rows."""
    chosen = with_needs(views)
    used = {
        name: table for name, table in tables.items() if any(name in each.reads for each in chosen)
    }
    with (
        closing(SqlOracles(used, chosen)) as oracles,
        closing(MaintainedViews(used, chosen, kind, **options)) as maintained,
    ):
        return _judge(
            oracles, maintained, RandomTables(used, seed, values=values, accepts=accepts), changes
        )


def _judge(
    oracles: SqlOracles, maintained: MaintainedViews, source: RandomTables, changes: int
) -> int:
    """Compare all views after every change; return how often one held rows."""
    full = 0
    for number in range(changes + 1):
        change = source.change() if number else source.load()
        if change or not number:
            maintained.apply(change)
        oracles.fill(source.state)
        for view in maintained.views:
            expected, found = oracles.rows(view.name), maintained.held[view.name]
            full += bool(expected)
            assert found == expected, (
                f"{view.label} after change {number}:\n{view.query}\n"
                f"missing {dict(expected - found)}, wrong {dict(found - expected)}\n"
                f"the change {change}\nthe tables { {n: dict(r) for n, r in source.state.items()} }"
            )
            assert maintained.answer(view) == found, f"{view.label} as a question: {view.query}"
    return full


def with_needs(views: Iterable[CorpusView]) -> list[CorpusView]:
    """Return views behind those that they read, each once."""
    found: dict[str, CorpusView] = {}
    for view in views:
        found |= {each.name: each for each in (*view.needs, view)}
    return list(found.values())
