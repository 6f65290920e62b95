"""The corpus of SQL views: other engines agree on it, and with the package after every change."""

from __future__ import annotations

import pytest

import corollary
from support.selection import examples, sampled, seed_of_run
from support.sql.corpus import GRAPHS, RandomTables, corpus, corpus_tables, has_no_cycle
from support.sql.view_judge import SqlOracles

FILES = sorted({each.file for each in corpus()})
RECURSIVE = sorted({each.file for each in corpus("recursive")})


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(corpus()) >= 250
    assert len(corpus("recursive")) >= 40
    every = (*corpus(), *corpus("recursive"))
    assert {name for each in every for name in each.absent} <= {"sqlite", "spark"}


@pytest.mark.parametrize("file", sampled(FILES, 4))
def test_duckdb_and_sqlite_agree(request: pytest.FixtureRequest, file: str) -> None:
    tables = corpus_tables()
    views = [each for each in corpus() if each.file == file]
    oracles = SqlOracles(tables, views)
    request.addfinalizer(oracles.close)
    for seed in range(examples(1, 20)):
        source = RandomTables(tables, f"{file} {seed_of_run()} {seed}")
        source.load()
        oracles.fill(source.state)
        for view in views:
            oracles.rows(view.name)


@pytest.mark.parametrize("file", sampled(RECURSIVE, 5))
def test_duckdb_and_sqlite_agree_on_recursion(request: pytest.FixtureRequest, file: str) -> None:
    tables = corpus_tables("recursive_tables.sql")
    views = [each for each in corpus("recursive") if each.file == file]
    oracles = SqlOracles(tables, views)
    request.addfinalizer(oracles.close)
    for seed in range(examples(1, 10)):
        name = f"{file} {seed_of_run()} {seed}"
        source = RandomTables(tables, name, values=GRAPHS, accepts=has_no_cycle)
        source.load()
        oracles.fill(source.state)
        for view in views:
            oracles.rows(view.name)


def test_many_aggregates_do_not_double_the_rules() -> None:
    columns = ", ".join(f"SUM(x + {at}) AS s{at}, MAX(x - {at}) AS m{at}" for at in range(8))
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k INT, x INT)")
        database.sql(f"CREATE VIEW v AS SELECT k, {columns} FROM t GROUP BY k")
        database.sql("INSERT INTO t VALUES (1, 2), (1, 2), (1, NULL)")
        assert database.sql("SELECT s7, m1 FROM v").rows() == [(18, 1)]
