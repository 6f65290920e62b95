"""What one task of a read has to do: names of files, and how their rows make those of a relation.

A relation at a commit is its snapshot and the changes since, whose net effect is a set of removed
tuples, which the snapshot has, and one of added tuples, which it has not:

    tasks 1 … n    some files of the snapshot, without the removed tuples
    task n + 1     the added tuples

Each of these tasks reads all changes since the snapshot, so each gets at least as many rows of the
snapshot as there are changes. If nothing was removed, a task reads nothing but its own files.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import schema_of
from corollary.core.arrow_buffers import bool_array
from corollary.core.program import Relation
from corollary.core.records.record_structs import struct_type, with_records
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.feed_tables import UNWATCHED, feed_columns, unknown_row, with_commit
from corollary.database.reading.read_access import ReadAccess
from corollary.engines.spark.bulk.spark_columns import spark_arrow_type
from corollary.engines.spark.frames import BATCH_ROWS, HOLDS_COLUMN, UNSIGNED_TYPE
from corollary.errors import InputError
from corollary.spark.access import DataSourceOptions, OpenSource, open_source
from corollary.warehouse.catalog.catalog_rows import RecordedChange, StoredChange
from corollary.warehouse.consistent_read import read_consistently
from corollary.warehouse.copies import difference_of_copies, repeat_rows
from corollary.warehouse.files.durable_files import DELETE, INSERT
from corollary.warehouse.files.file_rows import RowsFile
from corollary.warehouse.files.multi_file_table import table_files
from corollary.warehouse.files.places import Place
from corollary.warehouse.publishing.history import net_delta
from corollary.warehouse.row_words import is_among, row_words
from corollary.warehouse.set_difference import minus
from corollary.warehouse.warehouse import Warehouse, read_change

TASK_ROWS = 1 << 19
"""A task reads files with at least so many rows, as far as there are any."""
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"
_SQL = re.compile(r"[\s(]*(?:(?:select|with|from)\s|values\b)", re.IGNORECASE)


# --- what Spark gets -----------------------------------------------------------------------------


def spark_schema(shape: Relation) -> pa.Schema:
    """Return the columns of a relation as Spark has them: all may be null, which it compares."""
    if not shape.columns:
        return pa.schema([(HOLDS_COLUMN, pa.bool_())])
    columns = zip(shape.columns, shape.types, strict=True)
    return pa.schema([(name, _spark_type(type_)) for name, type_ in columns])


def _spark_type(type_: Type) -> pa.DataType:
    if type_.record is None:
        return spark_arrow_type(type_)
    return _without_unsigned(struct_type(type_.record))


def _without_unsigned(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([(each.name, _without_unsigned(each.type)) for each in type_])
    return UNSIGNED_TYPE if type_ == pa.uint64() else type_


def spark_batches(tables: Iterable[pa.Table], shape: Relation) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a relation as Spark takes them."""
    schema = spark_schema(shape)
    for table in tables:
        if shape.columns:
            named = pa.Table.from_arrays(table.columns, names=list(shape.columns))
            rows = with_records(named, shape, "struct").cast(schema)
        else:
            rows = pa.table([pa.repeat(pa.scalar(True), table.num_rows)], schema=schema)
        yield from rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)


# --- relations -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContentPart:
    """Some tuples that a relation has at a commit.

    Attributes:
        root: the place of the warehouse.
        holder: the relation as it is stored; of a bag, that of its counts.
        has_copies: whether it is a bag.
        files: of the snapshot; if there are none, the part is what the changes have added.
        changes: since the snapshot.
    """

    root: Place
    holder: Relation
    has_copies: bool
    files: tuple[RowsFile, ...]
    changes: tuple[StoredChange, ...]

    def tables(self) -> Iterator[pa.Table]:
        """Yield the tuples."""
        for rows in self._stored():
            yield repeat_rows(rows) if self.has_copies else rows

    def _stored(self) -> Iterator[pa.Table]:
        net = net_delta([read_change(self.root, each) for each in self.changes], self.holder)
        if not self.files:
            yield net.added
        for each in self.files:
            rows = each.read(self.holder)
            yield minus(rows, net.removed) if net.removed.num_rows else rows


def content_parts(
    warehouse: Warehouse, relation: Relation, number: int, *, has_copies: bool
) -> list[ContentPart]:
    """Return what tasks read of a stored relation, as it is at a commit."""
    return read_consistently(
        warehouse.catalog, lambda: _content_parts(warehouse, relation, number, has_copies)
    )


def _content_parts(
    warehouse: Warehouse, relation: Relation, number: int, has_copies: bool
) -> list[ContentPart]:
    snapshot = warehouse.catalog.latest_snapshots(number).get(relation.name)
    start = 0 if snapshot is None else snapshot.commit
    changes = [each for _, each in warehouse.catalog.changes(start, number, relation.name)]
    base = None
    if snapshot is not None:
        base = StoredChange(
            relation.name, snapshot.rows, 0, True, snapshot.checksum, None, snapshot.path
        )
    full = max((at for at, each in enumerate(changes) if each.is_full), default=None)
    if full is not None:  # what was there before it does not count
        base, changes = changes[full], changes[full + 1 :]

    def part(files: Sequence[RowsFile], changes: Sequence[StoredChange]) -> ContentPart:
        return ContentPart(
            warehouse.root.absolute(), relation, has_copies, tuple(files), tuple(changes)
        )

    has_files = base is not None and base.path is not None and bool(relation.types)
    if base is not None and not has_files:
        changes = [base, *changes]
    files = _files(warehouse, base) if base is not None and has_files else []
    changed = sum(each.added + each.removed for each in changes)
    if not any(each.removed for each in changes):
        for each in changes if relation.types else ():
            if each.path is not None:
                inserted = None if each.is_full else INSERT
                files += [replace(file, change_type=inserted) for file in _files(warehouse, each)]
        changes = [each for each in changes if each.path is None or not relation.types]
        kept: list[StoredChange] = []
    else:
        kept = changes
    parts = [part(each, kept) for each in _groups(files, max(TASK_ROWS, changed))]
    return [*parts, part((), changes)] if changes else parts


def _files(warehouse: Warehouse, stored: StoredChange) -> list[RowsFile]:
    assert stored.path is not None
    rows = stored.added + stored.removed
    return table_files(warehouse.root, stored.path, rows, stored.checksum)


def _groups(files: Iterable[RowsFile], rows: int) -> Iterator[list[RowsFile]]:
    """Yield files in groups with at least so many rows, but for the last one."""
    group: list[RowsFile] = []
    for each in files:
        group.append(each)
        if sum(file.rows for file in group) >= rows:
            yield group
            group = []
    if group:
        yield group


# --- questions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryPart:
    """All answers to a question, or all tuples of a virtual relation: the task opens the database.

    Attributes:
        options: say what is asked.
        shape: the columns when it was planned.
    """

    options: DataSourceOptions
    shape: Relation

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows.

        Raises:
            InputError: `C1571`, the columns are others now.
        """
        with open_source(self.options) as source, source.view() as database:
            relation, rows = self._answer(database)
            if spark_schema(source.shape(relation)) != spark_schema(self.shape):
                raise other_columns(relation.name)
            yield rows

    def _answer(self, database: ReadAccess) -> tuple[Relation, pa.Table]:
        query = self.options.get("query")
        if query is None:
            view = database.relation(self.shape.name)
            return view.shape, view.arrow()
        if not is_sql(query):
            return database.answers(query)
        answer = database.ask(query, None, {})
        return answer.shape, answer.arrow()


def is_sql(query: str) -> bool:
    """Whether a question is written in SQL, and not as a goal.

    >>> is_sql("SELECT 1"), is_sql('link("a", y)')
    (True, False)
    """
    return _SQL.match(query) is not None


def other_columns(name: str) -> InputError:
    """Return the error of a relation whose columns have changed."""
    return InputError.of(
        "C1571",
        f"The columns of `{name}` are others than those that Spark knows.",
        None,
        "load it again; read changes with `startingVersion` after the commit that has changed them",
    )


# --- changes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedPart:
    """What a commit has changed in a relation, or some files of it.

    Attributes:
        root: the place of the warehouse.
        change: with the relation as it was declared then.
        key: the columns of its key: a deleted and an inserted tuple that agree there are an update.
        source: all rows of `kind`, where these are read from elsewhere than the change.
    """

    root: Place
    change: RecordedChange
    key: tuple[int, ...] = ()
    source: "RowsFile | ContentPart | QueryPart | None" = None
    kind: str = INSERT

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, with the columns of a feed."""
        for kind, rows in self._sides():
            yield with_commit(rows, kind, self.change.commit, rows.num_rows)

    def _sides(self) -> Iterator[tuple[str, pa.Table]]:
        relation, stored = self.change.relation, self.change.stored
        if isinstance(self.source, RowsFile):
            yield self.kind, self.source.read(relation)
        elif self.source is not None:
            yield from ((self.kind, rows) for rows in self.source.tables())
        elif stored is None:
            yield UNWATCHED, unknown_row(relation)
        else:
            delta = read_change(self.root, stored)
            sides = delta.removed, delta.added
            if self.change.is_of_counts:
                sides = difference_of_copies(delta.added, delta.removed)[::-1]
            yield from (
                self._updates(*sides) if self.key else zip((DELETE, INSERT), sides, strict=True)
            )

    def _updates(self, removed: pa.Table, added: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        both = pa.concat_tables([removed, added.cast(removed.schema)]).select(list(self.key))
        words = row_words(both.columns, both.num_rows)
        old, new = words[: removed.num_rows], words[removed.num_rows :]
        for kind, image, rows, own, others in (
            (DELETE, PREIMAGE, removed, old, new),
            (INSERT, POSTIMAGE, added, new, old),
        ):
            is_update = is_among(own, others)
            yield kind, rows.filter(bool_array(~is_update))
            yield image, rows.filter(bool_array(is_update))


def feed_parts(
    source: OpenSource, shape: Relation, changes: Iterable[RecordedChange]
) -> list[FeedPart]:
    """Return what tasks read of the changes of a relation.

    Raises:
        InputError: `C1571`, it had other columns then.
    """
    warehouse, key = source.warehouse, source.key_of(shape.name)
    root = warehouse.root.absolute()
    parts: list[FeedPart] = []
    for each in changes:
        then, stored = each.relation, each.stored
        if (then.columns, schema_of(then).types) != (shape.columns, schema_of(shape).types):
            raise other_columns(shape.name)
        part = FeedPart(root, each, key)
        if each.emptied is not None:
            gone = content_parts(warehouse, *each.emptied, has_copies=each.is_of_counts)
            parts += [replace(part, source=content, kind=DELETE) for content in gone]
        elif stored is None or stored.path is None or key or each.is_of_counts or not then.types:
            parts.append(part)
        else:
            counts = {DELETE: stored.removed, INSERT: stored.added}
            parts += [
                replace(part, source=file, kind=kind)
                for kind in counts
                if counts[kind]
                for file in (
                    replace(each, change_type=None if stored.is_full else kind)
                    for each in _files(warehouse, stored)
                )
            ]
    return parts


def feed_shape(shape: Relation) -> Relation:
    """Return a relation with the columns of its feed."""
    return feed_columns(shape, has_gaps=True)


def relation_parts(source: OpenSource, shape: Relation) -> "list[ContentPart] | list[QueryPart]":
    """Return what tasks read of a relation; one that is not stored is computed by a task."""
    holder = source.normal.holder_of(shape.name)
    if not holder.is_stored:
        return [QueryPart(source.options.at(source.number), shape)]
    has_copies = shape.name in source.normal.bags
    return content_parts(source.warehouse, holder, source.number, has_copies=has_copies)


def initial_parts(source: OpenSource, shape: Relation) -> list[FeedPart]:
    """Return what a relation holds at a commit, as if it had been inserted by it."""
    assert source.commit is not None
    change = RecordedChange(shape, source.commit, None, is_of_counts=False)
    root = source.warehouse.root.absolute()
    return [FeedPart(root, change, source=each) for each in relation_parts(source, shape)]
