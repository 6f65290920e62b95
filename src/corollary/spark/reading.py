"""The readers of the data source: planned from the catalog, carried out by tasks.

Spark pickles a reader before it asks for partitions, so that these have all that a task needs. A
class that read both batches and streams would give streams no rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from corollary.core.program import Relation
from corollary.database.history import recorded_changes
from corollary.database.program.goals import goal_relations, read_goal
from corollary.errors import InputError
from corollary.spark.access import DataSourceOptions, OpenSource, bad_option, open_source
from corollary.spark.parts import (
    FeedPart,
    QueryPart,
    feed_parts,
    feed_shape,
    initial_parts,
    is_sql,
    other_columns,
    relation_parts,
    spark_batches,
    spark_schema,
)

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2, a micro-batch has all that is there
    ReadAllAvailable = ReadMaxRows = SupportsTriggerAvailableNow = object  # type: ignore[misc,assignment]

VERSION = "version"
"""The field of an offset: the last commit that was read."""
NOTHING_READ = -1
"""The offset of a stream that begins with what the relation holds."""


def source_shape(source: OpenSource) -> Relation:
    """Return the columns of what is read, with those of changes."""
    options = source.options
    query = options.get("query")
    if query is not None:
        return source.shape(_query_shape(source, query))
    shape = source.relation(options.given["relation"])
    return feed_shape(shape) if options.has_feed else shape


def _query_shape(source: OpenSource, query: str) -> Relation:
    """Return the columns of a question, for which no data is read."""
    if source.loaded is None:
        raise InputError.of("C0916", "There is no relation yet.", None, "load a program first")
    if is_sql(query):
        return source.without_data().question_shape(query, {})
    for name in goal_relations(query):
        source.relation(name)
    return read_goal(source.loaded, query).answers


def planned_shape(options: DataSourceOptions, schema: StructType) -> Relation:
    """Return the columns of what is read, if they are those that Spark knows.

    Raises:
        InputError: `C1571`, they are not.
    """
    with open_source(options) as source:
        shape = source_shape(source)
    known = [(each.name, each.dataType) for each in schema]
    if known != [(each.name, each.dataType) for each in from_arrow_schema(spark_schema(shape))]:
        raise other_columns(options.get("relation") or "the query")
    return shape


class PartReader:
    """Reads the parts that were planned; Spark calls it in tasks."""

    def __init__(self, shape: Relation) -> None:
        self._shape = shape

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part; Spark makes a partition without a part if there is none."""
        part = partition.value
        return iter(()) if part is None else spark_batches(part.tables(), self._shape)


class SourceBatchReader(PartReader, DataSourceReader):
    """Reads a relation, a question or changes as they are when the query is planned."""

    def __init__(self, options: DataSourceOptions, shape: Relation) -> None:
        super().__init__(shape)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return the parts, one for each task."""
        with open_source(self._options) as source:
            return [InputPartition(each) for each in self._parts(source)]

    def _parts(self, source: OpenSource) -> Sequence[Any]:
        options = self._options
        if options.get("query") is not None:
            return [QueryPart(options, self._shape)]
        shape = source.relation(options.given["relation"])
        if not options.has_feed:
            return relation_parts(source, shape)
        first, last = options.number("startingVersion"), options.number("endingVersion")
        return change_parts(source, shape, None if first is None else max(first - 1, 0), last)


def change_parts(
    source: OpenSource, shape: Relation, since: int | None, upto: int | None
) -> list[FeedPart]:
    """Return what tasks read of the changes after one commit and up to another."""
    changes = recorded_changes(source.warehouse, shape, since, upto)
    return feed_parts(source, shape, [each for alike in changes for each in alike])


class SourceStreamReader(PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads changes; offsets are commits."""

    def __init__(self, options: DataSourceOptions, shape: Relation) -> None:
        super().__init__(shape)
        self._options = options
        self._target: int | None = None
        if not options.has_feed:
            raise bad_option(
                "A stream reads changes", 'say so: `.option("readChangeFeed", "true")`'
            )

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the commit before the first one; none, if the relation itself comes first."""
        first = self._options.number("startingVersion")
        return {VERSION: NOTHING_READ if first is None else max(first - 1, 0)}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """Return how much a micro-batch has."""
        rows = self._options.number("maxRowsPerTrigger")
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note the last commit: later ones are not read."""
        self._target = self._latest()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """Return the last commit of the next micro-batch, which has at least one commit."""
        latest = self._latest() if self._target is None else self._target
        most = getattr(limit, "max_rows", None)
        if start is None or most is None or start[VERSION] == NOTHING_READ:
            return {VERSION: latest}
        return {VERSION: self._bounded(start[VERSION], latest, most)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the last commit, for the progress of the query."""
        return {VERSION: self._latest()}

    def _latest(self) -> int:
        with open_source(self._options) as source:
            return source.number

    def _bounded(self, start: int, latest: int, most: int) -> int:
        """Return the last commit up to which no more rows than these have changed."""
        with open_source(self._options) as source:
            holder = source.normal.holder_of(self._options.given["relation"]).name
            counts = source.warehouse.catalog.change_counts(start, latest)
        rows = 0
        for number, name, added, removed in counts:
            rows += (added + removed) * (name == holder)
            if rows > most and number > start + 1:
                return max(number - 1, start + 1)
        return latest

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the parts of a micro-batch, one for each task."""
        first, last = start[VERSION], end[VERSION]
        if first == last:
            return []
        options = self._options
        if first == NOTHING_READ:
            options = options.at(last)
        with open_source(options) as source:
            shape = source.relation(options.given["relation"])
            if first == NOTHING_READ:
                return [InputPartition(each) for each in initial_parts(source, shape)]
            return [InputPartition(each) for each in change_parts(source, shape, first, last)]
