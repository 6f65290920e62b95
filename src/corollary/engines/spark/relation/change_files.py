"""Files of changes: the tuples that partitions gained and lost, written once and never modified."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import bool_array, bool_values, index_array
from corollary.core.program import Relation
from corollary.engines.local.storage.sorting import first_mask
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import encode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.relation.files import PartitionChange
from corollary.engines.spark.relation.shared_files import local_directory, share, with_file

READ_MAX_FILES = 4
"""So many files of changes are kept mapped: the next partition is likely to be in the same one."""

SIGN_COLUMN = "+"
"""The last column of a file of changes: whether the tuple was added."""


def write_change(root: str, name: str, added: pa.Table, removed: pa.Table) -> PartitionChange:
    """Write tuples that a partition gained and lost to a new file below a root."""
    (written,) = write_changes(root, name, [(added, removed)])
    return written


def write_changes(
    root: str, name: str, changes: Sequence[tuple[pa.Table, pa.Table]]
) -> list[PartitionChange]:
    """Write tuples that partitions gained and lost to one new file below a root."""
    names = changes[0][0].column_names
    tables = [each.rename_columns(names) for change in changes for each in change]
    sizes = np.array([each.num_rows for each in tables])
    signs = np.repeat(np.arange(len(sizes)) % 2 == 0, sizes)
    rows = pa.concat_tables(tables).combine_chunks().append_column(SIGN_COLUMN, bool_array(signs))
    with (
        pa.OSFile(str(local_directory(root) / name), "wb") as file,
        pa.ipc.new_file(file, rows.schema) as writer,
    ):
        writer.write_table(rows)
    share(root, name)
    firsts = (np.cumsum(sizes) - sizes)[::2].tolist()
    return [
        PartitionChange(name, added.num_rows, removed.num_rows, first=first)
        for (added, removed), first in zip(changes, firsts, strict=True)
    ]


def read_change(root: str, change: PartitionChange) -> tuple[pa.Table, pa.Table]:
    """Return the tuples that a partition gained and lost."""
    rows = _read_changes(root, change.file).slice(change.first, change.size)
    last = rows.num_columns - 1
    is_added = bool_values(rows.column(last).combine_chunks())
    assert np.count_nonzero(is_added) == (0 if change.is_reversed else change.added)
    rows = rows.select(range(last))
    return rows.slice(0, change.added), rows.slice(change.added)


@lru_cache(maxsize=READ_MAX_FILES)
def _read_changes(root: str, name: str) -> pa.Table:
    """Return what a file of changes holds; it is mapped, and never modified."""

    def read(path: Path) -> pa.Table:
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).read_all()

    return with_file(root, name, read)


def merge_changes(
    root: str, name: str, relation: Relation, changes: Sequence[PartitionChange]
) -> PartitionChange:
    """Write one file with the effect of several changes, in their order."""
    pairs = [read_change(root, each) for each in changes]
    rows = pa.concat_tables([table for pair in pairs for table in pair])
    sizes = [size for each in changes for size in (each.added, each.removed)]
    is_added = np.repeat(np.arange(len(sizes)) % 2 == 0, sizes)
    words = encode_words(rows, Table(relation.types), Dictionary())
    order = np.argsort(words, kind="stable")
    starts = first_mask(words[order]).nonzero()[0]
    firsts, lasts = order[starts], order[np.append(starts[1:], len(order)) - 1]
    # A tuple that came and went, or went and came, is as it was before.
    kept = lasts[is_added[firsts] == is_added[lasts]]
    gained, lost = kept[is_added[kept]], kept[~is_added[kept]]
    added, removed = (rows.take(index_array(each)) for each in (gained, lost))
    written = write_change(root, name, added, removed)
    return replace(written, merged=tuple(each.file for each in changes))
