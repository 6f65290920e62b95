"""Random SQL queries as views, judged by DuckDB and SQLite after every change.

Each engine has bugs of its own (SQLite's `RIGHT JOIN`, DuckDB's top-k after deletes), so that two
vote: where they differ, the package has to agree with one of them, and the state is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache

import duckdb
from sqlglot.errors import UnsupportedError

from oracles.sql_engines import DuckdbViews, Row, SqliteViews, SqlTable, read_tables
from support.generators.sql_queries import TABLES, SqlScenario
from support.sql.corpus import CorpusView, RandomTables
from support.sql.view_judge import MATERIALIZED, VIRTUAL, MaintainedViews

NAME = "answer"
NOT_IN_SQLITE = ("SEMI JOIN", "ANTI JOIN", "EXCEPT ALL", "INTERSECT ALL")


@cache
def query_tables() -> dict[str, SqlTable]:
    """Return the tables of random queries."""
    return read_tables(TABLES)


class _Votes:
    """What DuckDB and SQLite say of one query."""

    def __init__(self, view: CorpusView) -> None:
        self._duckdb = DuckdbViews(query_tables())
        self._duckdb.define(NAME, view.query)
        self._sqlite: SqliteViews | None = None
        if not any(each in view.query for each in NOT_IN_SQLITE):
            self._sqlite = SqliteViews(query_tables())
            try:
                self._sqlite.define(NAME, view.query)
            except UnsupportedError:
                self._sqlite = None

    def after(self, source: RandomTables) -> Iterator[Counter[Row]]:
        """Yield what each engine says."""
        self._duckdb.fill(source.state)
        try:
            yield self._duckdb.rows(NAME)
        except duckdb.NotImplementedException:
            assert self._sqlite, "no engine has this query"
        if self._sqlite:
            self._sqlite.fill(source.state)
            yield self._sqlite.rows(NAME, self._duckdb.kinds[NAME])

    def close(self) -> None:
        """Give everything back."""
        self._duckdb.close()
        if self._sqlite:
            self._sqlite.close()


def judge_query(scenario: SqlScenario) -> Counter[str]:
    """Maintain a query through its changes; return how many states there were, by kind."""
    view = CorpusView("random", NAME, "random", scenario.query, (), {}, {})
    kind = MATERIALIZED if scenario.is_stored else VIRTUAL
    with (
        closing(_Votes(view)) as votes,
        closing(MaintainedViews(query_tables(), [view], kind, bulk=scenario.bulk)) as maintained,
    ):
        return _judge(scenario, votes, maintained)


def _judge(scenario: SqlScenario, votes: _Votes, maintained: MaintainedViews) -> Counter[str]:
    source = RandomTables(query_tables(), scenario.seed, rows=scenario.rows)
    found: Counter[str] = Counter()
    before: Counter[Row] = Counter()
    for number in range(scenario.changes + 1):
        change = source.change() if number else source.load()
        if change:
            maintained.apply(change)
        held = maintained.held[NAME]
        said = list(votes.after(source))
        assert held in said, (
            f"after change {number} of {scenario}:\n{scenario.query}\n"
            f"missing {dict(said[0] - held)}, wrong {dict(held - said[0])}\n"
            f"the change {change}\nthe tables { {n: dict(r) for n, r in source.state.items()} }"
        )
        answer = maintained.answer(maintained.views[0])
        assert answer == held, (
            f"the question after change {number} of {scenario}:\n{scenario.query}\n"
            f"missing {dict(held - answer)}, wrong {dict(answer - held)}"
        )
        found["states of queries"] += 1
        found["disputed"] += any(each != held for each in said)
        found["changed"] += number > 0 and held != before
        before = held
    return found
