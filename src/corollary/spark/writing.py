"""The writers of the data source: tasks stage rows, and one transaction takes all of them.

rows → (tasks) checked and converted, in files or with the message → (driver) net change → commit

What a task has staged is below an intent of the catalog, as files of commits are: if nobody commits
it, `gc` removes it. The transaction is made in a process that Spark starts beside the driver: it
opens the warehouse, whoever else has it open. Where others commit first, it is tried again.
"""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from corollary.core.arrow import empty_table, nullary_table
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole
from corollary.database.database import Database, state_of
from corollary.database.opening import open_with
from corollary.database.pending_commit import DeferredOperations
from corollary.database.writing.events import first_bad_rows, net_change
from corollary.database.writing.operations import Operation
from corollary.engines.spark.frames import HOLDS_COLUMN, tables_of
from corollary.errors import CorollaryError, Diagnostic, InputError
from corollary.spark.access import DataSourceOptions, bad_option, open_source
from corollary.streaming.batches import METADATA_FILE
from corollary.streaming.frames import FrameReader
from corollary.warehouse.copies import difference, repeat_rows, row_difference
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.places import Place, place_of
from corollary.warehouse.warehouse_catalog import DATA_DIRECTORY

# Before PySpark 4.2, timestamps are in UTC without saying so.
IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)
FRAME = "the frame"
"""What errors call the rows."""
INLINE_ROWS = 1 << 14
"""No more rows than these travel with the message of a task."""


@dataclass(frozen=True, slots=True)
class StagedMessage(WriterCommitMessage):
    """What a task tells of its rows.

    Attributes:
        intent: below which its files are.
        staged: the rows: Arrow streams, or files that have one, with their checksums.
        findings: about rows that do not fit.
    """

    intent: str
    staged: tuple[bytes | tuple[str, str], ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    def tables(self, root: Place) -> Iterator[pa.Table]:
        """Yield the rows.

        Raises:
            WarehouseError: a file is missing, or not what was written.
        """
        for each in self.staged:
            data = each if isinstance(each, bytes) else durable_files.read(root, *each)
            yield durable_files.from_arrow_stream(data)


class _SourceWriter(ABC):
    """Stages rows in tasks, and makes a transaction of them."""

    def __init__(
        self, options: DataSourceOptions, schema: StructType, *, is_overwritten: bool
    ) -> None:
        self._options, self._is_overwritten = options, is_overwritten
        self._reader = FrameReader(options.get("op"), options.get("order"))
        name = options.get("relation")
        if name is None:
            raise bad_option("A `query` cannot be written to", "name a relation")
        if is_overwritten and options.get("op") is not None:
            raise bad_option("`op` says what to delete, and `overwrite` replaces all", "append")
        with open_source(options) as source:
            source.principal.require(AccessRole.WRITE, "change data")
            self._relation = state_of(source.outline).writable_relation(name)
            self._root = source.warehouse.root.absolute()
            empty = to_arrow_schema(schema, **IN_UTC).empty_table()
            self._reader.read(empty, self._relation, name, FRAME)
            self._intent = source.warehouse.catalog.insert_intent()

    # --- in tasks ------------------------------------------------------------------------------

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task."""
        staged = []
        for table in tables_of(iterator):
            (events,) = self._reader.read(table, self._relation, self._relation.name, FRAME)
            if events.bad.num_rows:
                findings = first_bad_rows(events.bad, events.findings, self._relation.name)
                return StagedMessage(self._intent, findings=tuple(findings[:1]))
            if events.rows is not None and events.rows.num_rows:
                staged.append(self._stage(events.rows))
        return StagedMessage(self._intent, tuple(staged))

    def _stage(self, rows: pa.Table) -> bytes | tuple[str, str]:
        if not rows.num_columns:  # a stream would not say how many rows there are
            rows = pa.table({HOLDS_COLUMN: pa.repeat(pa.scalar(True), rows.num_rows)})
        data = durable_files.to_arrow_stream(rows)
        if rows.num_rows <= INLINE_ROWS:
            return data
        name = f"{DATA_DIRECTORY}/{self._intent}/staged-{secrets.token_hex(16)}.arrow"
        return name, durable_files.write(self._root, name, data)

    # --- beside the driver ---------------------------------------------------------------------

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803 - Spark's name
    ) -> None:
        """Make one transaction of all rows, unless there is one of the same key."""
        told = [each for each in messages if isinstance(each, StagedMessage)]
        try:
            findings = [found for each in told for found in each.findings]
            if findings:
                raise InputError(findings[:1])
            with (
                open_source(self._options) as source,
                open_with(self._options.path, source.engine, create=False) as database,
            ):
                state_of(database).author = source.principal
                self._transact(database, told, self._key(batchId))
        finally:
            self.abort(messages)

    @abstractmethod
    def _key(self, batch: int | None) -> str | None:
        """Return the idempotency key of the transaction, if it has one."""

    def _transact(self, database: Database, told: list[StagedMessage], key: str | None) -> None:
        transaction = database.transaction(idempotency=key)
        if not transaction.is_repeated:
            name, state = self._relation.name, state_of(database)
            has_copies = name in state.loaded.normal.bags
            tables = [table for each in told for table in each.tables(self._root)]
            rows = pa.concat_tables(tables) if tables else empty_table(self._relation)
            if not self._relation.columns:
                rows = nullary_table(min(1, len(tables)))
            change = net_change(rows, self._relation, has_copies=has_copies)
            if self._is_overwritten:
                transaction.read(lambda: _replacement(database, name, change.added))
            else:
                transaction.delete(name, change.removed)
                transaction.insert(name, change.added)
            transaction.commit()
        database.publish(transaction)
        database.deliver()

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: ARG002, N803 - Spark's name
    ) -> None:
        """Remove what tasks have staged; `gc` finds what stays."""
        told = {each.intent for each in messages if isinstance(each, StagedMessage)}
        with suppress(CorollaryError), open_source(self._options) as source:
            for intent in {self._intent, *told}:
                source.warehouse.abandon(intent, is_certain=True)


class SourceBatchWriter(_SourceWriter, DataSourceArrowWriter):
    """Writes a frame: all of it, or nothing."""

    def __init__(
        self, options: DataSourceOptions, schema: StructType, *, is_overwritten: bool
    ) -> None:
        self._written = _frame_key(options)  # before anything is staged
        super().__init__(options, schema, is_overwritten=is_overwritten)

    def _key(self, batch: int | None) -> str | None:  # noqa: ARG002 - those of streams have one
        return self._written


class SourceStreamWriter(_SourceWriter, DataSourceStreamArrowWriter):
    """Writes micro-batches, each once: the key of its transaction has the query and the batch."""

    def __init__(
        self, options: DataSourceOptions, schema: StructType, *, is_overwritten: bool
    ) -> None:
        self._query = _query_id(options)  # before anything is staged
        super().__init__(options, schema, is_overwritten=is_overwritten)

    def _key(self, batch: int | None) -> str:
        return f"stream {self._query} {batch}"


def _replacement(database: Database, name: str, rows: pa.Table) -> DeferredOperations:
    """Return what has to go and to come so that a relation has just these rows."""
    state = state_of(database)
    normal = state.loaded.normal
    held = state.engine.read(normal.bags.get(name) or normal.bases.get(name, name))
    is_bag = name in normal.bags
    came, went = row_difference(repeat_rows(held), rows) if is_bag else difference(held, rows)
    return DeferredOperations(
        [Operation(State.REMOVED, name, went), Operation(State.ADDED, name, came)], {}
    )


def _frame_key(options: DataSourceOptions) -> str | None:
    """Return the key of a frame that is not written twice, if one is given.

    Raises:
        InputError: `C1570`, half of it is given.
    """
    name, version = options.get("txnAppId"), options.number("txnVersion")
    if (name is None) != (version is None):
        raise bad_option(
            "A write is recognised by `txnAppId` and `txnVersion` together", "give both, or none"
        )
    return None if name is None else f"{name} {version}"


def _query_id(options: DataSourceOptions) -> str:
    """Return the id of a stream, which is that of its checkpoint.

    Raises:
        InputError: `C1572`, it cannot be read here.
    """
    name, checkpoint = options.get("txnAppId"), options.get("checkpointLocation")
    if name is not None:
        return name
    try:
        place = place_of((checkpoint or "").removeprefix("file:")) / METADATA_FILE
        return str(json.loads(durable_files.memory_map(place).to_pybytes())["id"])
    except CorollaryError as error:
        raise InputError.of(
            "C1572",
            "The checkpoint of the stream is not known here, so that a repeated batch would not be "
            "recognised.",
            None,
            'give it with `.option("checkpointLocation", …)`, or name the stream with '
            '`.option("txnAppId", …)`, another name for each checkpoint',
        ) from error
