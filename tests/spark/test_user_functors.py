"""Functors in Python inside tasks: their code travels with the plan."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import corollary
from corollary.core.user_functors.loading import load_functors
from corollary.errors import EvaluationError

CODE = """
import corollary

OFFSET = 100


def shifted(x):
    return x + OFFSET


@corollary.functor
def in_tasks(x: int) -> int:
    if x == 13:
        raise ValueError("thirteen")
    return shifted(x)
"""
PROGRAM = """
.functor in_tasks(x: number): number
.decl edge(a: number, b: number)
.decl path(a: number, b: number)
path(a, b) :- edge(a, b).
path(a, @in_tasks(c) - 100) :- path(a, b), edge(b, c).
"""


def test_recursion_in_tasks(spark: Any, tmp_path: Path) -> None:
    code = tmp_path / "task_functors.py"
    code.write_text(CODE)
    load_functors(code)
    db = corollary.open(None, spark=spark, placement="partitions")
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("edge", [(n, n + 1) for n in range(6)])
    assert len(db.relation("path").rows()) == 21
    with db.transaction() as tx:
        tx.delete("edge", [(2, 3)])
    assert sorted(db.relation("path").rows()) == [
        *((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (3, 6), (4, 5), (4, 6), (5, 6))
    ]
    with (
        pytest.raises(EvaluationError, match="raised ValueError: thirteen"),
        db.transaction() as tx,
    ):
        tx.insert("edge", [(6, 13)])
    db.close()
    assert not cloudpickle.list_registry_pickle_by_value()
