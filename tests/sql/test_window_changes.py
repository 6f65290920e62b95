"""Window functions: after each change as DuckDB computes them."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import pytest

import corollary
from corollary.engines.local.evaluation import window_changes
from corollary.maintain import choose
from support.selection import examples, sampled, seed_of_run
from support.spark.in_process_partitions import everything_partitioned
from support.sql.corpus import corpus, corpus_tables
from support.sql.view_judge import MATERIALIZED, judge_views

NEAR = (
    "LAG(b, {0}) OVER (PARTITION BY a ORDER BY b[ NULLS FIRST, k])",
    "LEAD(k, 2, -1) OVER (ORDER BY a, k)",
    "LAG(s) OVER (PARTITION BY a ORDER BY k DESC)",
    "SUM(b) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN {0} PRECEDING AND 1 PRECEDING)",
    "MIN(b) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND {0} FOLLOWING)",
    "LAG(k) OVER (PARTITION BY a ORDER BY b DESC[ NULLS LAST], k DESC)",
    "LAG(k, {0}) OVER (ORDER BY a, b DESC[ NULLS LAST, k])",
    "SUM(k) OVER (ORDER BY b DESC[ NULLS LAST, k] ROWS BETWEEN 2 PRECEDING AND {0} FOLLOWING)",
)
"""Window functions; the order of ties, which is written out for DuckDB only, is in brackets."""

RUNNING = (
    "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b[ NULLS FIRST, k])",
    "RANK() OVER (ORDER BY b DESC[ NULLS LAST])",
    "RANK() OVER (PARTITION BY a ORDER BY s[ NULLS FIRST], b DESC[ NULLS LAST])",
    "SUM(k) OVER (PARTITION BY a ORDER BY b[ NULLS FIRST])",
    "SUM(b) OVER (ORDER BY k DESC ROWS UNBOUNDED PRECEDING)",
    "AVG(b) OVER (PARTITION BY a ORDER BY k % 5, b DESC[ NULLS LAST, k] ROWS UNBOUNDED PRECEDING)",
    "COUNT(b) OVER (PARTITION BY a ORDER BY s[ NULLS FIRST])",
    "DENSE_RANK() OVER (ORDER BY b DESC[ NULLS LAST])",
    "DENSE_RANK() OVER (PARTITION BY a ORDER BY s[ NULLS FIRST], b[ NULLS FIRST])",
)
PARTITIONED = (
    "DENSE_RANK() OVER (PARTITION BY a ORDER BY b[ NULLS FIRST])",
    "MAX(b) OVER (PARTITION BY a)",
    "MIN(b) OVER (PARTITION BY a ORDER BY k DESC)",
    "FIRST_VALUE(k) OVER (PARTITION BY s ORDER BY b DESC[ NULLS LAST, k])",
    "LAST_VALUE(b) OVER (ORDER BY s[ NULLS FIRST, k] ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING)",
    "SUM(b) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)",
)
NUMBERED = "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b[ NULLS FIRST, k])"
RANKED = "RANK() OVER (PARTITION BY a ORDER BY b DESC[ NULLS LAST])"
TOP = (
    "SELECT k, a, b FROM t ORDER BY b DESC[ NULLS LAST, k] LIMIT {0}",
    "SELECT k, a, b FROM t ORDER BY a DESC, b[ NULLS FIRST], s DESC[ NULLS LAST, k] LIMIT {0}",
    "SELECT b, s FROM t ORDER BY b[ NULLS FIRST, s NULLS FIRST] LIMIT {0} OFFSET 2",
    "SELECT DISTINCT ON (a) a, b, k FROM t ORDER BY a, b DESC[ NULLS LAST], k % {0}[, k]",
    "SELECT DISTINCT ON (s, k % {0}) b FROM t ORDER BY k % {0} DESC, s[ NULLS FIRST, k]",
    f"SELECT k, r FROM (SELECT k, {NUMBERED} AS r FROM t) x WHERE r <= {{0}}",
    f"SELECT k FROM (SELECT k, {RANKED} AS r FROM t) x WHERE r < {{0}}",
)
FUNCTIONS = (*NEAR, *RUNNING, *PARTITIONED)
VIEWS = (*(f"SELECT k, {each} AS v FROM t" for each in FUNCTIONS), *TOP)


@pytest.mark.parametrize("view", sampled(VIEWS, 8))
def test_windows_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, view: str) -> None:
    compared: list[bool] = []
    compare = window_changes.compare_windows

    def recorded(*arguments: Any) -> bool:
        compared.append(compare(*arguments))
        return compared[-1]

    monkeypatch.setattr(window_changes, "compare_windows", recorded)
    for seed in range(examples(1, 30)):
        chance = random.Random(f"{seed_of_run()} {view} {seed}")
        query = view.format(chance.choice((2, 3, 5)))
        ours, theirs = re.sub(r"\[.*?\]", "", query), re.sub(r"[\[\]]", "", query)
        _compare(chance, ours, theirs, str(tmp_path / str(seed)))
    assert any(compared)


def _compare(chance: random.Random, ours: str, theirs: str, place: str) -> None:
    def row(key: int) -> tuple[Any, ...]:
        b = chance.choice((None, *range(6))) if chance.random() < 0.7 else chance.randrange(10**6)
        return key, chance.randrange(3), b, chance.choice((None, -1, 5))

    rows = {key: row(key) for key in range(chance.choice((0, 60, 60, 60)))}
    database = corollary.open(place, engine="local")
    database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a INT NOT NULL, b BIGINT, s INT)")
    database.sql(f"CREATE MATERIALIZED VIEW v AS {ours}")
    with database.transaction() as transaction:
        transaction.insert("t", list(rows.values()))
    for number in range(8):
        if number == 4:
            database.close()
            database = corollary.open(place, engine="local")
        gone = [key for key in rows if chance.random() < chance.choice((0.02, 0.1))]
        came = [chance.randrange(200) for _ in range(chance.choice((0, 1, 3, 12)))]
        with database.transaction() as transaction:
            transaction.delete("t", [rows.pop(key) for key in gone])
            new = {key: row(key) for key in came if key not in rows}
            transaction.insert("t", list(new.values()))
        rows |= new
        with closing(duckdb.connect()) as judge:
            judge.execute("CREATE TABLE t (k BIGINT, a INT, b BIGINT, s INT)")
            if rows:
                judge.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", list(rows.values()))
            expected = Counter(judge.execute(theirs).fetchall())
        found = database.sql("SELECT * FROM v")
        assert Counter(map(tuple, found.rows())) == expected, (ours, number, gone, new)
    database.close()


@pytest.mark.parametrize("label", ["windows-tied_numbers", "windows-tied_frames", "top-ties"])
def test_windows_of_rows_in_partitions(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is outside of the process is fetched, and computed partition by partition.

    The view of `top-ties`, which has no `PARTITION BY`, is computed anew.
    """
    if label == "top-ties":
        monkeypatch.setattr(choose, "BULK_MIN_FRAME_ROWS", 0)
    view = next(each for each in corpus() if each.label == label)
    with everything_partitioned(crc32(label.encode())):
        judge_views(corpus_tables(), [view], label, kind=MATERIALIZED, changes=3)


def test_a_running_sum_is_too_large_where_it_does_not_fit() -> None:
    with closing(corollary.open(engine="local")) as database:
        database.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, b BIGINT NOT NULL)")
        database.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(b) OVER (ORDER BY k) AS v FROM t")
        half = 2**62
        database.sql(f"INSERT INTO t VALUES (1, {half}), (2, {-half}), (4, {half})")
        assert database.sql("SELECT * FROM v").rows() == [(1, half), (2, 0), (4, half)]
        with pytest.raises(corollary.EvaluationError, match="Overflow"):
            database.sql(f"INSERT INTO t VALUES (5, {half})")


def test_rows_differ_in_a_key_that_nobody_reads(tmp_path: Path) -> None:
    program = tmp_path / "ranks.dl"
    program.write_text("""
.decl p(k: number, a: number, b: number) key(k)
.decl h(k: number, a: number, b: number, r: number) virtual
h(k, a, b, r) :- p(k, a, b), r = window("rank() over (order by $1)", b).
.decl g(a: number, r: number)
g(a, r) :- h(_, a, _, r), r <= 3.
.output g
""")
    chance = random.Random(seed_of_run())
    rows: dict[int, tuple[int, int, int]] = {}
    with closing(corollary.open(engine="local")) as database:
        database.load(program)
        for _ in range(40):
            gone = [rows.pop(key) for key in [*rows] if chance.random() < 0.2]
            keys = [key for key in chance.sample(range(30), 3) if key not in rows]
            came = {key: (key, chance.randrange(2), chance.randrange(4)) for key in keys}
            with database.transaction() as transaction:
                transaction.delete("p", gone)
                transaction.insert("p", list(came.values()))
            rows |= came
            ranks = {(a, 1 + sum(c < b for *_, c in rows.values())) for _, a, b in rows.values()}
            expected = {(a, rank) for a, rank in ranks if rank <= 3}
            assert {*map(tuple, database.relation("g").rows())} == expected
