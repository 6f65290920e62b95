"""The maintenance tasks: which views, which changes, who takes part, what is expected."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from bench import data
from bench.data import SEED, Relations
from bench.maintain.task import BEST, CHOOSING, DELETE, INSERT, Bar, Round, Step, Task, named
from bench.workloads import (
    BILL,
    BILL_SQL,
    GENERATION,
    GENERATION_SQL,
    LEFT,
    LEFT_CTE,
    REVENUE,
    REVENUE_SQL,
    TEAMS,
    TEAMS_SQL,
)

ROUNDS = 20
"""A median over so many changes."""

CLOSURE_SQL = f"{LEFT_CTE} FROM tc"

BRANCHES, DEPTH, BELOW = ROUNDS, 5, 50
"""The equal parts of growing trees: one for each round."""

RECURSIVE = ("ranked", "dred", "epf", "pf", "recompute")
NOT_RECURSIVE = ("counting", "dred", "epf", "pf", "recompute")

Size = Callable[[int], int]
"""Gives for a size at full scale the one wanted."""

Rounds = Callable[[Relations], Sequence[Round]]


def tasks(scale: float = 1.0) -> tuple[Task, ...]:
    """Return all maintenance tasks; bars are meant for a scale of 1."""

    def size(full: int) -> int:
        return max(10, round(full * scale))

    return (*closures(size), *growing(size), join(size), groups(size), bill(size), *choosing(size))


def closures(size: Size) -> tuple[Task, ...]:
    """Return stored closures that one random edge at a time is deleted from and inserted again."""

    def closure(
        name: str, about: str, relations: Callable[[], Relations], *bars: Bar, others: bool = False
    ) -> Task:
        return Task(
            name,
            "maintain-closures",
            f"stored closure of {about}; one edge",
            {"": relations},
            LEFT,
            CLOSURE_SQL,
            some_rows("edge"),
            ("ranked", "dred", "recompute") if others else ("ranked",),
            bars,
        )

    # Insertions are the same for all but the one that starts over.
    among_us = (Bar("ranked", "dred", 10, DELETE), Bar("dred", "recompute", 1 / 3, DELETE))
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


def growing(size: Size) -> tuple[Task, ...]:
    """Return a fixed change to trees that grow around it: the time should not."""

    def tree(nodes: int) -> Callable[[], Relations]:
        return lambda: data.grown_tree(size(nodes), BRANCHES, DEPTH, BELOW)

    def grown(small: int) -> Task:
        names = [f"{nodes:,}" for nodes in (small, 10 * small)]
        return Task(
            f"maintain-growth-{10 * small}",
            "maintain-growth",
            f"one branch of a tree; {names[0]} nodes against {names[1]}",
            dict(zip(names, (tree(small), tree(10 * small)), strict=True)),
            LEFT,
            CLOSURE_SQL,
            branches,
            ("ranked",),
            (Bar(named("ranked", names[1]), named("ranked", names[0]), 1 / 1.5),),
        )

    return grown(10_000), grown(100_000)


def branches(relations: Relations) -> Sequence[Round]:
    """Return rounds that cut off the tuft at the end of a branch, each round of another one."""
    table = relations["edge"]
    first = 1 + np.arange(BRANCHES) * (DEPTH + BELOW)
    child = table["y"].to_numpy()
    rows = [np.flatnonzero(child == each + DEPTH - 1) for each in first]
    return [there_and_back("edge", table.take(pa.array(each))) for each in rows]


def join(size: Size) -> Task:
    """Return a sum over a join of three relations that one row at a time changes."""
    return Task(
        "maintain-join",
        "maintain-join",
        "sum by category and region over a join of three relations, 5,000,000 rows; one row",
        {"": lambda: data.sales(size(5_000_000), size(10_000), size(500))},
        REVENUE,
        REVENUE_SQL,
        some_rows("sale"),
        ("auto", "recompute"),
        (Bar("auto", "recompute", 100),),
    )


def groups(size: Size) -> Task:
    """Return sums over small and large groups that the same rows change: both take as long."""
    rows, widths = size(1_000_000), (100, 100_000)
    names = [f"groups of {width:,}" for width in widths]

    def relations(width: int) -> Callable[[], Relations]:
        return lambda: data.teams(rows, size(width))

    return Task(
        "maintain-groups",
        "maintain-groups",
        "sum by team of 1,000,000 readings; 1,000 rows",
        dict(zip(names, map(relations, widths), strict=True)),
        TEAMS,
        TEAMS_SQL,
        some_rows("reading", 0.001),
        ("auto",),
        (Bar(named("auto", names[1]), named("auto", names[0]), 1 / 2),),
    )


def bill(size: Size) -> Task:
    """Return a bill of materials, a sum through recursion, of which one link at a time changes."""
    return Task(
        "maintain-bill",
        "maintain-groups",
        "what 20,000 wholes need, a sum through recursion; one link",
        {"": lambda: data.bill(size(20_000))},
        BILL,
        BILL_SQL,
        some_rows("uses"),
        ("ranked", "recompute"),
        (Bar("ranked", "recompute", 2),),
    )


def choosing(size: Size) -> tuple[Task, ...]:
    """Return changes from one row to half of a relation, for auto and each single algorithm."""
    views: tuple[tuple[str, str, Callable[[], Relations], str, str], ...] = (
        (
            "random",
            "closure of a random graph, 500 nodes, 1,000 edges",
            lambda: data.random_graph(size(500), size(1000)),
            LEFT,
            CLOSURE_SQL,
        ),
        (
            "tree",
            "closure of a tree, 20,000 nodes",
            lambda: data.random_tree(size(20_000)),
            LEFT,
            CLOSURE_SQL,
        ),
        (
            "dag",
            "closure of a DAG, 800 nodes, 2,400 edges",
            lambda: data.local_dag(size(800), size(2400), reach=60),
            LEFT,
            CLOSURE_SQL,
        ),
        (
            "generation",
            "same generation on a tree, 1,500 nodes",
            lambda: data.random_tree(size(1500)),
            GENERATION,
            GENERATION_SQL,
        ),
        (
            "join",
            "sum over a join of three relations, 200,000 rows",
            lambda: data.sales(size(200_000), size(2000), size(100)),
            REVENUE,
            REVENUE_SQL,
        ),
    )
    return tuple(
        Task(
            f"maintain-auto-{view}-{label}",
            CHOOSING,
            f"{about}; {wording}",
            {"": relations},
            program,
            sql,
            some_rows("sale" if view == "join" else "edge", share),
            ("auto", *(NOT_RECURSIVE if view == "join" else RECURSIVE)),
            (Bar("auto", BEST, 1 / 1.2, switched=1 / 1.5),),
            allotted=2.5,
            patience=5.0,
        )
        for view, about, relations, program, sql in views
        for label, wording, share in (
            ("row", "one row", 0.0),
            ("1", "1 % of the rows", 0.01),
            ("10", "10 % of the rows", 0.1),
            ("50", "half of the rows", 0.5),
        )
    )


def some_rows(relation: str, share: float = 0.0) -> Rounds:
    """Return rounds that each delete random rows, one or a share, and insert them again."""

    def rounds(relations: Relations) -> Sequence[Round]:
        table = relations[relation]
        random = np.random.default_rng(SEED)
        count = max(1, round(share * table.num_rows))
        chosen = (random.choice(table.num_rows, count, replace=False) for _ in range(ROUNDS))
        return [there_and_back(relation, table.take(pa.array(rows))) for rows in chosen]

    return rounds


def there_and_back(relation: str, rows: pa.Table) -> Round:
    """Return the round that deletes rows and inserts them again."""
    return (Step(DELETE, relation, rows), Step(INSERT, relation, rows))
