"""What the tasks of a read have to do: each reads a portion of tuples, and gives them to Spark.

A relation at a commit is its snapshot and the changes since, whose net effect is a set of removed
tuples, which the snapshot has, and one of added tuples, which it has not:

    tasks 1 … n    some files of the snapshot, without the removed tuples
    task n + 1     the added tuples

Each of these tasks reads all changes since the snapshot, so each gets at least as many rows of the
snapshot as there are changes. If nothing was removed, a task reads nothing but its own files.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from corollary.core.arrow import schema_of
from corollary.core.engine import Portion
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.database.database import state_of
from corollary.database.feed_tables import UNWATCHED, change_sides, unknown_row, with_commit
from corollary.database.reading.sql_texts import is_sql
from corollary.engines.spark.frames import BATCH_ROWS, FrameRows
from corollary.errors import InputError
from corollary.spark.access import DataSourceOptions, OpenSource, open_source
from corollary.warehouse.catalog.catalog_rows import Commit, RecordedChange, StoredChange
from corollary.warehouse.consistent_read import read_consistently
from corollary.warehouse.copies import change_data, minus, repeat_portion
from corollary.warehouse.files.durable_files import DELETE, INSERT
from corollary.warehouse.files.file_rows import RowsFile
from corollary.warehouse.files.multi_file_table import table_files
from corollary.warehouse.files.places import Place
from corollary.warehouse.publishing.history import net_delta
from corollary.warehouse.warehouse import Warehouse, read_change

TASK_ROWS = 1 << 19
"""A task reads files with at least so many rows, as far as there are any."""


def spark_schema(shape: Relation) -> pa.Schema:
    """Return the columns of a relation as Spark has them: all may be null, which it compares."""
    return pa.schema([each.with_nullable(True) for each in FrameRows(shape, "struct").schema])


@dataclass(frozen=True, slots=True)
class TaskPart:
    """What a task reads, and the columns of that."""

    tuples: Portion
    shape: Relation

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Spark takes them."""
        make_rows, schema = FrameRows(self.shape, "struct"), spark_schema(self.shape)
        for table in self.tuples():
            rows = make_rows(table).cast(schema).combine_chunks()
            yield from rows.to_batches(max_chunksize=BATCH_ROWS)


# --- relations and questions ---------------------------------------------------------------------


def relation_portions(source: OpenSource, name: str) -> list[Portion]:
    """Return what tasks read of a relation; one that is not stored is computed by a task."""
    normal = state_of(source.outline).loaded.normal
    holder = normal.holder_of(name)
    if not holder.is_stored:
        return [partial(_answers, source.options.at(source.number))]
    return _content_portions(source.warehouse, holder, source.number, name in normal.bags)


def _content_portions(
    warehouse: Warehouse, relation: Relation, number: int, has_copies: bool
) -> list[Portion]:
    """Return what tasks read of what is stored of a relation: its tuples, or counts of copies."""
    found = read_consistently(warehouse.catalog, lambda: _content(warehouse, relation, number))
    return [partial(repeat_portion, each) for each in found] if has_copies else found


def _content(warehouse: Warehouse, relation: Relation, number: int) -> list[Portion]:
    changes = warehouse.recorded_content(relation.name, number)
    # What was there before the last full one does not count.
    changes = changes[max((at for at, each in enumerate(changes) if each.is_full), default=0) :]
    has_removed = any(each.removed for each in changes)
    files: list[RowsFile] = []
    others: list[StoredChange] = []
    for each in changes:
        if each.path is not None and relation.types and (each.is_full or not has_removed):
            files += _files(warehouse, each, INSERT)
        else:
            others.append(each)
    compared = others if has_removed else []
    least = max(TASK_ROWS, sum(each.added + each.removed for each in compared))
    tasks = [(group, compared) for group in _groups(files, least)]
    if others:
        tasks.append(([], others))
    return [partial(_read_content, warehouse.root.absolute(), relation, *each) for each in tasks]


def _read_content(
    root: Place, relation: Relation, files: Sequence[RowsFile], changes: Sequence[StoredChange]
) -> Iterator[pa.Table]:
    """Yield the tuples of files without those that changes remove; without files, added ones."""
    net = net_delta([read_change(root, each) for each in changes], relation)
    if not files:
        yield net.added
    for each in files:
        rows = each.read(relation)
        yield minus(rows, net.removed) if net.removed.num_rows else rows


def _files(warehouse: Warehouse, stored: StoredChange, kind: str) -> list[RowsFile]:
    """Return the files of a change, of which rows of one kind are read."""
    assert stored.path is not None
    rows = stored.added + stored.removed
    found = table_files(warehouse.root, stored.path, rows, stored.checksum)
    return [replace(each, change_type=None if stored.is_full else kind) for each in found]


def _groups(files: Iterable[RowsFile], rows: int) -> Iterator[list[RowsFile]]:
    """Yield files in groups with at least so many rows, but for the last one."""
    group: list[RowsFile] = []
    held = 0
    for each in files:
        group.append(each)
        held += each.rows
        if held >= rows:
            yield group
            group, held = [], 0
    if group:
        yield group


def question_part(source: OpenSource, question: str) -> TaskPart:
    """Return what a task answers; the columns are found without any data."""
    if is_sql(question):
        shape = source.outline.question_shape(question, {})
    else:
        shape, _ = source.outline.answers(question)
    return TaskPart(partial(_answers, source.options.at(source.number)), source.shape(shape))


def _answers(options: DataSourceOptions) -> Iterator[pa.Table]:
    """Yield the answers to a question, or the tuples of a relation that is not stored."""
    question = options.get("query")
    with open_source(options) as source:
        database = source.contents()
        if question is None:
            yield database.relation(options.given["relation"]).arrow()
        elif is_sql(question):
            yield database.ask(question, None, {}).arrow()
        else:
            yield database.query(question)


def other_columns(name: str) -> InputError:
    """Return the error of a relation whose columns have changed."""
    return InputError.of(
        "C1571",
        f"The columns of `{name}` are others than those that Spark knows.",
        None,
        "load it again; read changes with `startingVersion` after the commit that has changed them",
    )


# --- changes -------------------------------------------------------------------------------------


def initial_portions(source: OpenSource, name: str) -> list[Portion]:
    """Return what tasks read of a relation as if the commit had inserted it."""
    assert source.commit is not None
    return [_of_kind(each, INSERT, source.commit) for each in relation_portions(source, name)]


def change_portions(
    source: OpenSource, shape: Relation, changes: Iterable[RecordedChange]
) -> list[Portion]:
    """Return what tasks read of the changes of a relation.

    Raises:
        InputError: `C1571`, it had other columns then.
    """
    warehouse, key = source.warehouse, source.key_of(shape)
    root = warehouse.root.absolute()
    portions: list[Portion] = []
    for each in changes:
        then, stored = each.relation, each.stored
        if (then.columns, schema_of(then).types) != (shape.columns, schema_of(shape).types):
            raise other_columns(shape.name)
        if each.emptied is not None:
            gone = _content_portions(warehouse, *each.emptied, each.is_of_counts)
            portions += [_of_kind(some, DELETE, each.commit) for some in gone]
        elif stored is None or stored.path is None or key or each.is_of_counts or not then.types:
            portions.append(partial(_read_whole_change, root, each, key))
        else:
            portions += [
                _of_kind(partial(_read_content, root, then, [file], []), kind, each.commit)
                for kind, count in ((DELETE, stored.removed), (INSERT, stored.added))
                for file in (_files(warehouse, stored, kind) if count else ())
            ]
    return portions


def _of_kind(tuples: Portion, kind: str, commit: Commit) -> Portion:
    return partial(_rows_of_kind, tuples, kind, commit)


def _rows_of_kind(tuples: Portion, kind: str, commit: Commit) -> Iterator[pa.Table]:
    """Yield tuples with the columns of a feed."""
    for rows in tuples():
        yield with_commit(rows, kind, commit, rows.num_rows)


def _read_whole_change(
    root: Place, change: RecordedChange, key: tuple[int, ...]
) -> Iterator[pa.Table]:
    """Yield what a commit has changed, with the columns of a feed.

    A deleted and an inserted tuple that agree in the key are an update.
    """
    if change.stored is None:
        yield with_commit(unknown_row(change.relation), UNWATCHED, change.commit)
        return
    removed, added = change_sides(read_change(root, change.stored), change)
    for kind, rows in change_data(removed, added, key).items():
        yield with_commit(rows, kind, change.commit, rows.num_rows)
