"""TPC-H's tables and the 22 queries as maintained views, equal to DuckDB's answers."""

from __future__ import annotations

import sys

import duckdb
import pyarrow.compute as pc
import pytest

from support.paths import REPOSITORY

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

from bench.tpch.generator import TpchTables
from bench.tpch.views import duckdb_query, view_queries

SCALE = 0.002
KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}


@pytest.fixture(scope="module")
def made() -> TpchTables:
    return TpchTables(SCALE)


def test_the_same_seed_gives_the_same_rows(made: TpchTables) -> None:
    again = TpchTables(SCALE)
    assert all(again.tables[name].equals(table) for name, table in made.tables.items())
    assert not TpchTables(SCALE, seed=1).tables["lineitem"].equals(made.tables["lineitem"])


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_unique(made: TpchTables, name: str) -> None:
    table = made.tables[name].select(KEYS[name])
    assert table.group_by(KEYS[name]).aggregate([]).num_rows == table.num_rows > 0


def test_tables_fit_to_each_other(made: TpchTables) -> None:
    with duckdb.connect() as connection:
        for name, table in made.tables.items():
            connection.register(name, table)
        for query in (
            "FROM lineitem ANTI JOIN orders ON l_orderkey = o_orderkey",
            "FROM orders ANTI JOIN lineitem ON l_orderkey = o_orderkey",
            "FROM lineitem ANTI JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey",
            "FROM orders ANTI JOIN customer ON o_custkey = c_custkey",
            "FROM orders WHERE o_custkey % 3 = 0",
            "FROM lineitem WHERE l_receiptdate <= l_shipdate",
        ):
            assert connection.sql(f"SELECT count(*) {query}").fetchall() == [(0,)], query


def test_refresh_functions_insert_and_delete_whole_orders() -> None:
    made = TpchTables(SCALE)
    before = {name: made.tables[name].num_rows for name in ("orders", "lineitem")}
    new, old = made.new_orders(), made.old_orders()
    for name, count in before.items():
        now = made.tables[name].num_rows
        assert now == count + new[name].num_rows - old[name].num_rows
    assert new["orders"].num_rows == old["orders"].num_rows == made.refreshed
    keys = made.tables["orders"]["o_orderkey"]
    assert pc.all(pc.is_in(new["orders"]["o_orderkey"], keys)).as_py()
    assert not pc.any(pc.is_in(old["lineitem"]["l_orderkey"], keys)).as_py()


def test_most_queries_have_an_answer_in_duckdb(made: TpchTables) -> None:
    found = {}
    with duckdb.connect() as connection:
        for name, table in made.tables.items():
            connection.register(name, table)
        for name, query in view_queries(0.1, quantity=200).items():
            found[name] = len(connection.sql(duckdb_query(query)).fetchall())
    assert len(found) == 22
    assert len([name for name, count in found.items() if not count]) <= 3, found
