"""The maintenance tasks."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from bench import data
from bench.data import SEED, Relations
from bench.maintain.task import DELETE, INSERT, Bar, Round, Step, Task
from bench.workloads import LEFT, LEFT_CTE

ROUNDS = 20
"""A median over so many changes."""

CLOSURE_SQL = f"{LEFT_CTE} FROM tc"


def there_and_back(relation: str, rows: pa.Table) -> Round:
    """Return the round that deletes rows and inserts them again."""
    return (Step(DELETE, relation, rows), Step(INSERT, relation, rows))


def some_rows(relation: str, count: int = 1) -> Callable[[Relations], Sequence[Round]]:
    """Return rounds that each delete some random rows of a relation and insert them again."""

    def rounds(relations: Relations) -> Sequence[Round]:
        table = relations[relation]
        random = np.random.default_rng(SEED)
        chosen = (random.choice(table.num_rows, count, replace=False) for _ in range(ROUNDS))
        return [there_and_back(relation, table.take(pa.array(rows))) for rows in chosen]

    return rounds


def tasks(scale: float = 1.0) -> tuple[Task, ...]:
    """Return all maintenance tasks; bars are meant for a scale of 1."""

    def size(full: int) -> int:
        return max(10, round(full * scale))

    return closures(size)


def closures(size: Callable[[int], int]) -> tuple[Task, ...]:
    """Return stored closures that one random edge at a time is deleted from and inserted again."""

    def closure(
        name: str, about: str, relations: Callable[[], Relations], *bars: Bar, others: bool = False
    ) -> Task:
        return Task(
            name,
            "maintain-closures",
            f"stored closure of {about}, one edge",
            relations,
            LEFT,
            CLOSURE_SQL,
            some_rows("edge"),
            ("ranked", "dred", "recompute") if others else ("ranked",),
            bars,
        )

    among_us = (Bar("ranked", "dred", 10), Bar("dred", "recompute", 1 / 3))
    return (
        closure(
            "maintain-random-3000",
            "a random graph, 1,500 nodes, 3,000 edges",
            lambda: data.random_graph(size(1500), size(3000)),
            Bar("ranked", "duckdb", 8),
            *among_us,
            others=True,
        ),
        closure(
            "maintain-random-6000",
            "a random graph, 1,500 nodes, 6,000 edges",
            lambda: data.random_graph(size(1500), size(6000)),
            Bar("ranked", "duckdb", 40),
            *among_us,
            others=True,
        ),
        closure(
            "maintain-tree-100000",
            "a tree, 100,000 nodes",
            lambda: data.random_tree(size(100_000)),
            Bar("ranked", "duckdb", 80),
        ),
        closure(
            "maintain-dag",
            "a DAG, 3,000 nodes, 9,000 edges",
            lambda: data.local_dag(size(3000), size(9000), reach=60),
            Bar("ranked", "duckdb", 8),
        ),
    )
