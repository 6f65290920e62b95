"""Pathway as a peer: the same tables in a process of its own, a view that it maintains.

Tables share one input, whose rows name their table: a change of one of two inputs would wait for a
commit of the other. Time is that of the whole process until the changes of the view have arrived,
and in all, until the next have: the process was seen to go on computing after its output had
arrived. What it does then was not looked into.
"""

import gc
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any, Self

import pyarrow as pa

from bench.changes.pair import DELETE, INSERT, Cost, Edit
from bench.data import Relations


class PathwayPeer:
    """A process with tables and one view."""

    def __init__(self, connection: "Connection[Edit | None, Any]") -> None:
        self._connection = connection
        self._costs: list[tuple[Cost, float]] = []

    @classmethod
    @contextmanager
    def open(cls, tables: Relations, view: str) -> Iterator[Self | str]:
        """Start a process and fill its tables; where Pathway is missing, yield that."""
        if find_spec("pathway") is None:
            yield "without Pathway: it is not installed"
            return
        context = multiprocessing.get_context("spawn")
        connection, other = context.Pipe()
        process = context.Process(target=_maintain, args=(tables, view, other), daemon=True)
        process.start()
        other.close()
        try:
            connection.recv()
            yield cls(connection)
        finally:
            process.kill()
            process.join()

    def change(self, edit: Edit) -> None:
        """Make a change, one that changes the view."""
        self._connection.send(edit)
        self._costs.append(self._connection.recv())

    def answer(self) -> pa.Table:
        """Return the rows of the view; no change follows."""
        self._connection.send(None)
        return self._connection.recv()

    def __str__(self) -> str:
        costs, spent = zip(*self._costs, strict=True)
        mean = (spent[-1] - spent[0]) / (len(spent) - 1)
        return f"Pathway maintains {Cost.middle(costs)}, in all {1000 * mean:.2f} ms"


def _maintain(tables: Relations, view: str, connection: "Connection[Any, Edit | None]") -> None:
    """Fill the tables and send None, then what each edit and what all took, then the view."""
    import pathway as pw

    answer, changed, arrivals = Counter[tuple[Any, ...]](), set[int](), threading.Semaphore(0)

    class Feed(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # it is not installed
        def run(self) -> None:
            self.commit_edits(*(Edit(INSERT, name, rows) for name, rows in tables.items()))
            gc.freeze()
            connection.send(None)
            while edit := connection.recv():
                connection.send((Cost.of(partial(self.commit_edits, edit)), time.process_time()))
            connection.send(pa.Table.from_pylist(list(map(dict, answer.elements()))))

        def commit_edits(self, *edits: Edit) -> None:
            for kind, table, rows, old in edits:
                gone, come = (rows, None) if kind == DELETE else (old, rows)
                for row in gone.to_pylist() if gone else ():
                    self.delete(table=table, key=row.pop("id"), **row)  # `id` is Pathway's own
                for row in come.to_pylist() if come else ():
                    self.next(table=table, key=row.pop("id"), **row)
            self.commit()
            arrivals.acquire()

    def keep(key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001
        answer[tuple(row.items())] += 1 if is_addition else -1
        changed.add(time)

    def end(time: int) -> None:
        if time in changed:
            arrivals.release()

    names = {name for rows in tables.values() for name in rows.column_names[1:]}
    columns = {name: pw.column_definition(dtype=int, default_value=0) for name in names}
    for name, type_ in {"table": str, "key": int}.items():
        columns[name] = pw.column_definition(dtype=type_, primary_key=True)
    rows = pw.io.python.read(Feed(), schema=pw.schema_builder(columns), autocommit_duration_ms=None)
    sale, product = (rows.filter(rows.table == name) for name in ("sale", "product"))
    pw.io.subscribe(_view(view, sale, product, pw.reducers), keep, on_time_end=end)
    with connection:
        pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)


def _view(name: str, sale: Any, product: Any, reduce: Any) -> Any:
    if name == "filter-sum":
        large = sale.filter(sale.amount > 5000)
        return large.groupby(large.store).reduce(large.store, total=reduce.sum(large.amount))
    if name == "join-sum-count":
        groups = sale.join(product, sale.product == product.key).groupby(product.category)
        return groups.reduce(product.category, total=reduce.sum(sale.amount), sales=reduce.count())
    few = product.filter(product.category < 40)
    return sale.join_left(few, sale.product == few.key).select(sale.key, sale.amount, few.category)
