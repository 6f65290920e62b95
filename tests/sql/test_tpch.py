"""TPC-H's tables and the 22 queries as maintained views, equal to DuckDB's answers."""

from __future__ import annotations

import sys
from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import corollary
from support.paths import REPOSITORY
from support.selection import examples, sampled
from support.sql.tpch_judge import differences

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

from bench.tpch import refresh
from bench.tpch.generator import TpchTables
from bench.tpch.views import duckdb_query, statement, tables_read, tables_text, view_queries

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


# ------------------------------------------------------------------------------------ maintenance


class Answers:
    """Maintained views of TPC-H beside the same tables in DuckDB."""

    def __init__(self, scale: float, names: list[str]) -> None:
        self.made = TpchTables(scale)
        queries = view_queries(max(scale, 0.1), quantity=200)
        self.queries = {name: queries[name] for name in names}
        self.tables = sorted(
            {
                each
                for query in self.queries.values()
                for each in tables_read(query, self.made.tables)
            }
        )
        self.database = corollary.open(None, engine="local")
        self.database.sql(tables_text())
        for name, query in self.queries.items():
            self.database.sql(statement(name, query))
        self.change(inserted=self.made.tables)

    def change(
        self,
        inserted: dict[str, pa.Table] | None = None,
        deleted: dict[str, pa.Table] | None = None,
    ) -> None:
        """Make one transaction, and compare all views with DuckDB's answers."""
        with self.database.transaction() as transaction:
            for name, rows in (deleted or {}).items():
                if name in self.tables:
                    transaction.delete(name, rows)
            for name, rows in (inserted or {}).items():
                if name in self.tables:
                    transaction.insert(name, rows)
        with duckdb.connect() as connection:
            for name, table in self.made.tables.items():
                connection.register(name, table)
            for name, query in self.queries.items():
                expected = connection.sql(duckdb_query(query)).fetchall()
                assert differences(self.database.relation(name).rows(), expected) == [], name

    def alter(self, seed: int) -> None:
        """Change rows of every table at random: prices, dates, flags, names."""
        random = np.random.default_rng(seed)
        inserted, deleted = {}, {}
        for name, column, values in ALTERED:
            table = self.made.tables[name]
            chosen = np.unique(random.integers(0, table.num_rows, 5))
            others = np.setdiff1d(np.arange(table.num_rows), chosen)
            deleted[name] = table.take(chosen)
            at = table.column_names.index(column)
            field = table.schema.field(at)
            new = pa.array(random.choice(np.array(values, object), len(chosen)), field.type)
            inserted[name] = deleted[name].set_column(at, field, new)
            self.made.tables[name] = pa.concat_tables([table.take(others), inserted[name]])
        self.change(inserted, deleted)


ALTERED = (
    ("lineitem", "l_shipdate", (date(1994, 5, 1), date(1995, 9, 15), date(1996, 2, 1))),
    ("orders", "o_orderstatus", ("F", "O", "P")),
    ("customer", "c_acctbal", (Decimal("-5.00"), Decimal("9999.99"))),
    ("supplier", "s_comment", ("plain", "Customer has Complaints")),
    ("part", "p_type", ("PROMO PLATED TIN", "ECONOMY ANODIZED STEEL", "LARGE BRUSHED BRASS")),
    ("partsupp", "ps_supplycost", (Decimal("1.00"), Decimal("1000.00"))),
    ("nation", "n_name", ("GERMANY", "FRANCE", "CANADA", "SAUDI ARABIA")),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(sorted(view_queries(1)), 8))
def test_a_query_is_maintained(name: str) -> None:
    answers = Answers(examples(1, 10) / 1_000, [name])
    for seed in range(examples(1, 3)):
        answers.change(inserted=answers.made.new_orders())
        answers.change(deleted=answers.made.old_orders())
        answers.alter(seed)
    answers.database.close()


@pytest.mark.long
def test_all_queries_are_maintained_in_one_program() -> None:
    answers = Answers(0.01, sorted(view_queries(1)))
    for seed in range(2):
        answers.change(inserted=answers.made.new_orders())
        answers.change(deleted=answers.made.old_orders())
        answers.alter(seed)
    answers.database.close()


@pytest.mark.long
def test_the_bench_finds_no_difference() -> None:
    figures = list(refresh.run(0.002))
    assert [each.differences for each in figures if each.differences] == []
    assert len(figures) == 2 + 3 * 22 + 2
