"""What Spark adds: closures shared out to tasks, against loops, its own recursion and recomputing.

| figure | how it is taken |
|---|---|
| initial | the edges are inserted; the closure is materialised by tasks |
| delete, insert | the median of ten transactions of one edge; before them, one that is not timed |
| jobs | of a delete, at most |
| recompute/delete | the same delete with `algorithm="recompute"`, dry, in tasks as well |
| in a warehouse | the same deletes where they last, with the commit; nothing is published |
| loop | the best loop of DataFrames that we know (`rivals.loop`) |
| recursive/initial | Spark's own `WITH RECURSIVE` over a tree, which has no path twice |
| sql | a small closure by queries, a step at a time: one delete, and one insert |
| join | a sum over a join of three relations; rows change by the thousand |

All in one session on two cores, with workers that have been used before. Each figure shows its
jobs, by the event log (`jobs.py`). The local engine or DuckDB says what is right.
"""

import gc
import statistics
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import corollary
from bench import data, rivals
from bench.contenders import DuckdbQuery
from bench.figure import Figure
from bench.jobs import CORES, Session, Timed, session, size
from bench.measure import difference, in_order
from bench.workloads import LEFT, LEFT_CTE, REVENUE, REVENUE_SQL
from corollary.database.database import Database, state_of
from corollary.database.transaction import Transaction

NAME = "spark"
ABOUT = "closures of random graphs shared out to tasks, a tree, a join; local[2]"
DELETES = 10
RECOMPUTED = 3
CHANGED = 1_000

SMALL, MIDDLE, LARGE = 500, 1_500, 4_000
"""Nodes of random graphs with twice as many edges."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What was measured on a closure that is shared out: seconds."""

    initial: float
    delete: float


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken; bars are meant for a scale of 1."""
    with session() as counted:
        for figure in _figures(counted, scale):
            yield figure if scale == 1 else replace(figure, bar=None)


def _figures(counted: Session, scale: float) -> Iterator[Figure]:
    def scaled(full: int) -> int:
        return max(10, round(full * scale))

    def graph(nodes: int) -> pa.Table:
        return data.random_graph(scaled(nodes), 2 * scaled(nodes))["edge"]

    _warm(counted)
    yield from _closure(counted, graph(SMALL))
    shared = yield from _closure(counted, graph(MIDDLE))
    yield from _loop(counted, graph(MIDDLE), shared)
    yield from _recursive(counted, data.random_tree(scaled(100_000))["edge"])
    yield from _closure(counted, graph(LARGE), is_judged=True)
    yield from _join(counted, data.sales(scaled(20_000_000), scaled(10_000), scaled(500)))


def _warm(counted: Session) -> None:
    """Let workers start and load what they need, and Spark compile what it needs."""
    edges = data.random_graph(100, 200)["edge"]
    with _opened(counted, None) as database:
        _insert(database, edges)
        _delete(database, edges.slice(0, 1))
    beside = rivals.rival_session(counted.spark, rivals.LOOP_SETTINGS)
    rivals.loop(beside.createDataFrame(edges), CORES)


# --- closures ------------------------------------------------------------------------------------


def _closure(
    counted: Session, edges: pa.Table, *, is_judged: bool = False
) -> Generator[Figure, None, Shared]:
    """Yield what a closure costs in tasks; return its seconds."""
    referee = corollary.open(None, engine="local")
    referee.load(text=LEFT)
    _insert(referee, edges)
    tuples = state_of(referee).engine.size("answer")
    label = _about(tuples)
    chosen = _sample(edges, 1 + DELETES)
    with _opened(counted, None) as database:
        counted.forget_peaks()
        initial = counted.timed(_insert, database, edges)
        found = state_of(database).engine.size("answer")
        wrong = _unequal("tuples", found, tuples)
        peak, files = size(counted.peak()), size(counted.files())
        about = f"{initial.cost}; files of {files}, workers of {peak}"
        yield Figure(f"{label}: initial", initial.seconds, "s", None, about, differences=wrong)
        deletes, inserts, wrong = _turns(counted, database, referee, chosen)
        delete = _median(deletes)
        about = f"{_typical(deletes)}; workers of {size(counted.peak())}"
        yield Figure(f"{label}: delete", delete, "s", None, about, differences=wrong)
        yield Figure(f"{label}: insert", _median(inserts), "s", None, _typical(inserts))
        most = max(each.cost.jobs for each in deletes)
        yield Figure(f"{label}: jobs", most, "", 3, f"of a delete, at most; {DELETES} deletes")
        yield _recomputed(counted, database, chosen, deletes, label, is_judged=is_judged)
        wrong = _contents(database.relation("answer").arrow(), referee.relation("answer").arrow())
        yield Figure(f"{label}: tuples", tuples, "", None, "compared at last", differences=wrong)
    if is_judged:
        yield _in_a_warehouse(counted, edges, referee, chosen, label)
    return Shared(initial.seconds, delete)


def _turns(
    counted: Session, database: Database, referee: Database, edges: Sequence[pa.Table]
) -> tuple[list[Timed[Any]], list[Timed[Any]], tuple[str, ...]]:
    """Delete edges and insert them again; the first one is not counted."""
    deletes: list[Timed[Transaction]] = []
    inserts: list[Timed[Transaction]] = []
    wrong: list[str] = []
    for edge in edges:
        for verb, taken in ((_delete, deletes), (_insert, inserts)):
            taken.append(counted.timed(verb, database, edge))
            expected = verb(referee, edge)
            wrong += _unequal("changes", _counts(taken[-1].result), _counts(expected))
    return deletes[1:], inserts[1:], tuple(wrong)


def _recomputed(
    counted: Session,
    database: Database,
    edges: Sequence[pa.Table],
    deletes: Sequence[Timed[Any]],
    label: str,
    *,
    is_judged: bool,
) -> Figure:
    taken: list[Timed[Transaction]] = []
    wrong: list[str] = []
    for edge, delete in list(zip(edges[1:], deletes, strict=True))[:RECOMPUTED]:
        taken.append(counted.timed(_delete, database, edge, "recompute"))
        wrong += _unequal("changes", _counts(taken[-1].result), _counts(delete.result))
    about = f"{_median(taken):.3f} s; {_typical(taken)}"
    bar = 5.0 if is_judged else None
    value = _median(taken) / _median(deletes)
    name = f"{label}: recompute/delete"
    return Figure(name, value, "x", bar, about, is_floor=True, differences=tuple(wrong))


def _in_a_warehouse(
    counted: Session, edges: pa.Table, referee: Database, chosen: Sequence[pa.Table], label: str
) -> Figure:
    with tempfile.TemporaryDirectory() as directory:
        with _opened(counted, Path(directory) / "warehouse") as database:
            first = counted.timed(_insert, database, edges)
            deletes, _, wrong = _turns(counted, database, referee, chosen)
        about = f"{_typical(deletes)}; {first.seconds:.1f} s to materialise"
        return Figure(
            f"{label}: in a warehouse", _median(deletes), "s", 1.5, about, differences=wrong
        )


# --- rivals --------------------------------------------------------------------------------------


def _loop(counted: Session, edges: pa.Table, shared: Shared) -> Iterator[Figure]:
    beside = rivals.rival_session(counted.spark, rivals.LOOP_SETTINGS)
    frame = beside.createDataFrame(edges).localCheckpoint()
    taken = counted.timed(rivals.loop, frame, CORES)
    tuples, rounds = taken.result
    (expected,) = _duckdb({"edge": edges}, f"{LEFT_CTE} SELECT count(*) FROM tc")[0].to_pylist()
    wrong = _unequal("tuples", tuples, expected)
    about = f"{rounds} rounds; {taken.cost}"
    yield Figure("loop", taken.seconds, "s", None, about, differences=wrong)
    value = taken.seconds / shared.delete
    yield Figure("loop/delete", value, "x", 50, "with tasks", is_floor=True)
    value = taken.seconds / shared.initial
    yield Figure("loop/initial", value, "x", 20, "with tasks", is_floor=True)


def _recursive(counted: Session, edges: pa.Table) -> Iterator[Figure]:
    beside = rivals.rival_session(counted.spark, rivals.RECURSION_SETTINGS)
    frame = beside.createDataFrame(edges).localCheckpoint()
    theirs = counted.timed(rivals.recursive, beside, frame)
    with _opened(counted, None) as database:
        ours = counted.timed(_insert, database, edges)
        wrong = _unequal("tuples", state_of(database).engine.size("answer"), theirs.result)
    yield Figure("tree: recursive", theirs.seconds, "s", None, str(theirs.cost))
    about = f"{ours.cost}; {theirs.result:,} tuples"
    yield Figure("tree: initial", ours.seconds, "s", None, about, differences=wrong)
    value = theirs.seconds / ours.seconds
    yield Figure("tree: recursive/initial", value, "x", 1, "with tasks", is_floor=True)


# --- a join --------------------------------------------------------------------------------------


def _join(counted: Session, relations: data.Relations) -> Iterator[Figure]:
    """Yield what a view that is not recursive costs, where nobody says where it runs."""
    gc.collect()
    sale = relations["sale"]
    chosen = np.random.default_rng(data.SEED).choice(sale.num_rows, CHANGED // 2, replace=False)
    gone = sale.take(pa.array(np.sort(chosen)))
    come = gone.set_column(3, "amount", pa.array(gone["amount"].to_numpy() + 10_000))
    with corollary.open(None, spark=counted.spark) as database:
        database.load(text=REVENUE)

        def fill() -> Transaction:
            with database.transaction() as transaction:
                for name, rows in relations.items():
                    transaction.insert(name, rows)
            return transaction

        def change(old: pa.Table, new: pa.Table, **options: Any) -> Transaction:
            with database.transaction(**options) as transaction:
                transaction.delete("sale", old)
                transaction.insert("sale", new)
            return transaction

        initial = counted.timed(fill)
        wrong = _contents(database.relation("answer").arrow(), _duckdb(relations, REVENUE_SQL))
        place = initial.result.stats["answer"].placement
        about = f"{sale.num_rows:,} rows; placement {place}; {initial.cost}"
        yield Figure("join: initial", initial.seconds, "s", None, about, differences=wrong)
        change(gone, come)
        change(come, gone)
        taken = []
        for _ in range(RECOMPUTED):
            taken.append(counted.timed(change, gone, come))
            taken.append(counted.timed(change, come, gone))
        place = taken[0].result.stats["answer"].placement
        about = f"placement {place}; {_typical(taken)}"
        yield Figure("join: 1,000 rows", _median(taken), "s", None, about)
        anew = counted.timed(change, gone, come, algorithm="recompute", is_dry=True)
        wrong = _unequal("changes", _counts(anew.result), _counts(taken[0].result))
        about = f"{anew.seconds:.3f} s; {anew.cost}"
        value = anew.seconds / _median(taken)
        yield Figure("join: recompute/change", value, "x", 5, about, True, wrong)
        change(gone, come)
        changed = {**relations, "sale": _without(sale, chosen, come)}
        expected = _duckdb(changed, REVENUE_SQL)
        wrong = _contents(database.relation("answer").arrow(), expected)
        yield Figure("join: tuples", expected.num_rows, "", None, "compared at last", False, wrong)
    anew = _queried(counted, changed)
    wrong = _contents(anew.result, expected)
    about = f"{anew.seconds:.3f} s over Parquet; {anew.cost}"
    value = anew.seconds / _median(taken)
    yield Figure("join: Spark SQL/change", value, "x", None, about, True, wrong)


def _without(table: pa.Table, rows: Any, others: pa.Table) -> pa.Table:
    kept = np.ones(table.num_rows, np.bool_)
    kept[rows] = False
    return pa.concat_tables([table.filter(pa.array(kept)), others])


def _queried(counted: Session, relations: data.Relations) -> Timed[pa.Table]:
    """Let Spark answer the query from Parquet files, the second time."""

    def query() -> pa.Table:
        return counted.spark.sql(REVENUE_SQL).toArrow()

    with tempfile.TemporaryDirectory() as directory:
        for name, table in relations.items():
            path = Path(directory) / f"{name}.parquet"
            pq.write_table(table, path, row_group_size=1 << 20)
            counted.spark.read.parquet(path.as_uri()).createOrReplaceTempView(name)
        query()
        return counted.timed(query)


# --- transactions --------------------------------------------------------------------------------


def _opened(counted: Session, path: Path | None, placement: str = "partitions") -> Database:
    database = corollary.open(path, spark=counted.spark, placement=placement)
    database.load(text=LEFT)
    return database


def _insert(database: Database, edges: pa.Table) -> Transaction:
    with database.transaction() as transaction:
        transaction.insert("edge", edges)
    return transaction


def _delete(database: Database, edges: pa.Table, anew: str | None = None) -> Transaction:
    with database.transaction(algorithm=anew, is_dry=anew is not None) as transaction:
        transaction.delete("edge", edges)
    return transaction


def _sample(edges: pa.Table, count: int) -> list[pa.Table]:
    rows = np.random.default_rng(1).choice(edges.num_rows, count, replace=False)
    return [edges.slice(int(row), 1) for row in rows]


# --- judging -------------------------------------------------------------------------------------


def _counts(transaction: Transaction) -> tuple[int, int]:
    return transaction.changes["answer"].counts


def _unequal(what: str, found: object, expected: object) -> tuple[str, ...]:
    return () if found == expected else (f"{what}: {found}, and not {expected}",)


def _contents(found: pa.Table, expected: pa.Table) -> tuple[str, ...]:
    return tuple(difference("corollary", in_order(found), "the referee", in_order(expected)))


def _duckdb(relations: data.Relations, sql: str) -> pa.Table:
    query = DuckdbQuery(relations, sql)
    query.run()
    return query.answer()


def _about(tuples: int) -> str:
    return f"{tuples / 1e6:.2f} M" if tuples >= 10_000 else f"{tuples:,}"


def _told(taken: Timed[Transaction]) -> str:
    counts = taken.result.stats["answer"].counts
    touched = counts.get("checked", 0) + counts.get("propagated", 0)
    return f"{counts.get('rounds', 0)} rounds, {touched:,} tuples touched; {taken.cost}"


def _median(taken: Sequence[Timed[Any]]) -> float:
    return statistics.median(each.seconds for each in taken)


def _typical(taken: Sequence[Timed[Any]]) -> str:
    """Return what the jobs cost of which half the others cost less, in bytes moved."""
    costs = sorted((each.cost for each in taken), key=lambda each: each.moved)
    return f"median of {len(taken)}: {costs[len(costs) // 2]}"
