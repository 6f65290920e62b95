"""The readers of the data source: planned from the catalog, carried out by tasks.

Spark pickles a reader before it asks for partitions, so that these have all that a task needs. A
class that read both batches and streams would give streams no rows.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from corollary.core.program import Relation
from corollary.database.database import state_of
from corollary.database.feed_tables import feed_columns
from corollary.database.history import recorded_changes
from corollary.spark.access import DataSourceOptions, OpenSource, bad_option, open_source
from corollary.spark.parts import (
    TaskPart,
    change_portions,
    initial_portions,
    other_columns,
    question_part,
    relation_portions,
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
    question = options.get("query")
    if question is not None:
        return question_part(source, question).shape
    shape = source.relation(options.given["relation"])
    return feed_columns(shape, has_gaps=True) if options.has_feed else shape


def source_parts(source: OpenSource) -> list[TaskPart]:
    """Return what tasks read, as of the commit that was asked for."""
    options = source.options
    question = options.get("query")
    if question is not None:
        return [question_part(source, question)]
    if options.has_feed:
        first, last = options.number("startingVersion"), options.number("endingVersion")
        return change_parts(source, None if first is None else max(first - 1, 0), last)
    shape = source.relation(options.given["relation"])
    return [TaskPart(each, shape) for each in relation_portions(source, shape.name)]


def change_parts(source: OpenSource, since: int | None, upto: int | None) -> list[TaskPart]:
    """Return what tasks read of the changes after one commit and up to another."""
    shape = source.relation(source.options.given["relation"])
    found = recorded_changes(source.warehouse, shape, since, upto)
    changes = (each for alike in found for each in alike)
    fed = feed_columns(shape, has_gaps=True)
    return [TaskPart(each, fed) for each in change_portions(source, shape, changes)]


def _columns(schema: StructType) -> list[tuple[str, DataType]]:
    return [(each.name, each.dataType) for each in schema]


class PartReader:
    """Plans parts, and reads them in tasks."""

    def __init__(self, options: DataSourceOptions, schema: StructType) -> None:
        self._options, self._columns = options, _columns(schema)

    def _planned(self, parts: list[TaskPart]) -> list[InputPartition]:
        """Return parts as Spark takes them, if they have the columns that it knows.

        Raises:
            InputError: `C1571`, they do not.
        """
        if parts and _columns(from_arrow_schema(spark_schema(parts[0].shape))) != self._columns:
            raise other_columns(self._options.get("relation") or "the query")
        return [InputPartition(each) for each in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part; Spark makes a partition without a part if there is none."""
        part = partition.value
        return iter(()) if part is None else part.batches()


class SourceBatchReader(PartReader, DataSourceReader):
    """Reads a relation, a question or changes as they are when the query is planned."""

    def partitions(self) -> list[InputPartition]:
        """Return the parts, one for each task."""
        with open_source(self._options) as source:
            return self._planned(source_parts(source))


class SourceStreamReader(PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads changes; offsets are commits."""

    def __init__(self, options: DataSourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
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
            normal = state_of(source.outline).loaded.normal
            holder = normal.holder_of(self._options.given["relation"]).name
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
        if first != NOTHING_READ:
            with open_source(self._options) as source:
                return self._planned(change_parts(source, first, last))
        with open_source(self._options.at(last)) as source:
            shape = source_shape(source)
            found = initial_portions(source, shape.name)
            return self._planned([TaskPart(each, shape) for each in found])
