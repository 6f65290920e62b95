"""Makes partitions of tuples that lie in files elsewhere: what a first load has read in tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.partitioned import operations
from corollary.engines.spark.partitioned.jobs import PartitionJobs
from corollary.engines.spark.partitioned.open_partition import new_name
from corollary.engines.spark.partitioned.partition_files import (
    PartitionedFiles,
    StoredPartition,
    partition_count,
    split_table,
)


@dataclass(frozen=True, slots=True)
class PiecesByLead:
    """Splits tuples by columns, into files; it is pickled, and called in a task.

    Attributes:
        leads: the columns; the tuples are split by each of them.
        count: into so many partitions.
    """

    root: str
    relation: Relation
    leads: tuple[int, ...]
    count: int

    def __call__(self, rows: pa.Table) -> list[tuple[int, int, str]]:
        """Return the files: lead, number of the partition, name."""
        rows = rows.select(list(self.relation.columns))
        found = []
        for lead in self.leads:
            for number, part in split_table(rows, self.relation, lead, self.count):
                name = new_name(self.relation.name, "piece")
                (Path(self.root) / name).write_bytes(operations.to_bytes(part))
                found.append((lead, number, name))
        return found


def build_partitions(
    rows: TableHandle,
    relation: Relation,
    orders: Sequence[Order],
    root: str,
    jobs: PartitionJobs,
) -> PartitionedFiles:
    """Write the tuples of a handle as partitions, in two jobs; equal ones are one.

    Args:
        rows: may have tuples more than once, and in any order.
        relation: whose tuples they are.
        orders: that probes will need.
        root: a directory that the driver and all tasks see.
        jobs: runs the second job; the first is that of the handle.
    """
    count = partition_count(len(rows), jobs.slots)
    files = PartitionedFiles.empty(root, relation, orders, count)
    leads = tuple(each.lead for each in files.sets)
    pieces: dict[tuple[int, int], list[str]] = {}
    for made in rows.map_partitions(PiecesByLead(root, relation, leads, count)):
        for lead, number, name in made:
            pieces.setdefault((lead, number), []).append(name)
    by_lead = {each.lead: each for each in files.sets}
    tasks = [
        (
            operations.PartitionAddress(
                root, relation, by_lead[lead].orders, number, StoredPartition()
            ),
            operations.Gather(tuple(names)),
        )
        for (lead, number), names in pieces.items()
    ]
    results = jobs.run(tasks, f"load {relation.name}")
    for (lead, number), stored in zip(pieces, results, strict=True):
        part = by_lead[lead]
        by_lead[lead] = part.with_partitions({number: stored})
    for names in pieces.values():
        for name in names:
            (Path(root) / name).unlink(missing_ok=True)
    return replace(files, sets=tuple(by_lead.values()))
