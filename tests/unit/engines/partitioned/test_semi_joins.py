"""Semi-joins: which relations are looked up by the keys of the leading one, and what is found."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from corollary.core.arrow import from_python
from corollary.core.logic import NO_RULE, Variable, Wildcard
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import NUMBER, SYMBOL
from corollary.engines.spark.bulk.semi_joins import (
    KEY,
    ProbePartitions,
    SemiJoin,
    find_semi_joins,
)
from corollary.engines.spark.bulk.spark_columns import NUMBER_COLUMN
from corollary.engines.spark.exchange import split_open_change
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.open_partition import ranges_of
from corollary.engines.spark.relation.source import PartitionSource
from support.spark.in_process_partitions import run_here

X, Y, Z = (Variable(name, NUMBER) for name in "xyz")
DELTA, EDGE = Reference("delta", State.NEW), Reference("edge", State.OLD)


def pipeline(*stages: Probe | AntiProbe) -> Pipeline:
    return Pipeline(stages=stages, head=(X, Z), origin=NO_RULE)


def test_what_the_lead_binds_is_looked_up() -> None:
    found = find_semi_joins(pipeline(Probe(DELTA, (X, Y), ()), Probe(EDGE, (Y, Z), (0,))))
    assert found == {EDGE: [SemiJoin(0, DELTA, 1)]}


def test_what_only_later_relations_bind_is_read() -> None:
    last = Reference("last")
    stages = Probe(DELTA, (X, Wildcard()), ()), Probe(EDGE, (X, Y), (0,)), Probe(last, (Y, Z), (0,))
    assert find_semi_joins(pipeline(*stages)) == {EDGE: [SemiJoin(0, DELTA, 0)]}


def test_one_that_is_looked_up_twice_by_other_columns_is_read() -> None:
    twice = Probe(EDGE, (Y, Z), (0,)), AntiProbe(EDGE, (X, Z))
    assert find_semi_joins(pipeline(Probe(DELTA, (X, Y), ()), *twice)) == {}
    itself = Probe(EDGE, (X, Y), ()), Probe(EDGE, (Y, Z), (0,))
    assert find_semi_joins(pipeline(*itself)) == {}


def test_tasks_find_the_tuples_of_keys_with_the_open_change(tmp_path: Path) -> None:
    """Every tuple that has one of the keys, once; added ones of other keys may come along."""
    relation = Relation("edge", ("src", "dst"), (SYMBOL.with_null(True), NUMBER), False)
    rows = from_python([(f"n{at % 40}", at) for at in range(200)] + [(None, 7)], relation)
    files = PartitionedFiles.empty(str(tmp_path), relation, [(0, 1)], 4)
    source = PartitionSource(files, PartitionJobs(run_here, lambda: 2))
    files = source.changed(rows, rows.slice(0, 0), ranges_of(rows, relation))
    part = files.sets[0]
    change = (
        from_python(each, relation)
        for each in ([("n3", 900), ("n5", 901), ("other", 1)], [("n3", 3), ("n9", 9)])
    )
    changes = split_open_change(*change, relation, part.partitioning)
    asked = pa.table({KEY: ["n3", "n5", "absent", None, "n3"]})
    by_partition = part.partitioning.rows_by_partition(asked, (0,), relation.types)
    batches = [
        asked.take(places).append_column(NUMBER_COLUMN, pa.array([number] * len(places)))
        for number, places in by_partition.items()
    ]
    find = ProbePartitions(files, part, (0, 1), changes)
    found = pa.Table.from_batches(find(pa.concat_tables(batches).to_batches())).to_pylist()
    tuples = [(each["v0"], each["v1"]) for each in found]
    assert len(set(tuples)) == len(tuples)
    wanted = {(f"n{at % 40}", at) for at in range(200) if at % 40 in (3, 5)} - {("n3", 3)}
    wanted |= {("n3", 900), ("n5", 901), (None, 7)}
    assert wanted <= set(tuples) <= wanted | {("other", 1)}
