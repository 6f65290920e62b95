"""`autoinc()`: rows get numbers, rule after rule, in the order of their values.

A number depends on all rows, so that one that comes would move others: only a program that is
evaluated once has them. Rules are numbered in the order of the text, but after those they read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from corollary.core.engine import Engine
from corollary.core.program import NormalProgram

if TYPE_CHECKING:
    import pyarrow as pa


def number_rows(program: NormalProgram, engine: Engine, evaluate: Callable[[str], None]) -> None:
    """Fill the relations of numbered rows, one after another.

    Args:
        program: in normal form.
        engine: gets the rows.
        evaluate: evaluates a relation, from all that is numbered so far.
    """
    following = 0
    for numbered in _in_order(program):
        rows = program.counters[numbered]
        evaluate(rows)
        table = engine.read(rows)
        width = program.relations[numbered].arity - program.relations[rows].arity
        made = _numbered(table, program.relations[numbered].columns, width, following)
        engine.insert(program.bases.get(numbered, numbered), made)
        following += width * made.num_rows


def _numbered(table: "pa.Table", names: tuple[str, ...], width: int, first: int) -> "pa.Table":
    import pyarrow as pa

    if not table.num_columns:
        return pa.table({name: [first + at] for at, name in enumerate(names[:width])}).slice(
            0, table.num_rows
        )
    ordered = table.sort_by([(name, "ascending") for name in table.column_names])
    for at in range(width):
        numbers = first + at + width * np.arange(table.num_rows, dtype=np.int64)
        ordered = ordered.append_column(names[len(table.column_names) + at], pa.array(numbers))
    return ordered


def _in_order(program: NormalProgram) -> Iterator[str]:
    """Yield the relations of numbered rows, each after those that its rows depend on."""
    reads: dict[str, list[str]] = {name: [] for name in program.relations}
    for rule in program.rules:
        reads[rule.head.relation] += [literal.relation for literal in rule.literals]
    for aggregation in program.aggregations:
        reads[aggregation.relation].append(aggregation.body)
    needs = {
        numbered: _reachable(rows, reads) & program.counters.keys()
        for numbered, rows in program.counters.items()
    }
    waiting = list(needs)
    while waiting:
        # The check `counters` refuses rules that depend on their own numbers.
        ready = next(each for each in waiting if not needs[each] & {*waiting})
        waiting.remove(ready)
        yield ready


def _reachable(relation: str, reads: Mapping[str, Iterable[str]]) -> set[str]:
    found, work = {relation}, [relation]
    while work:
        for each in reads[work.pop()]:
            if each not in found:
                found.add(each)
                work.append(each)
    return found
