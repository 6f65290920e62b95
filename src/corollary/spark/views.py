"""A warehouse in a session of Spark: a temporary view for each relation, and a table function.

Spark keeps the plan of a frame, with the files of the commit that it was first read at, and a view
of a frame keeps it too. So the views are texts, which Spark analyses whenever they are used: a
table function plans what tasks read and gives it out as rows, a function of Arrow reads each of
these to an array, and `inline` makes rows of that again.
"""

import pickle
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, BinaryType, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from corollary.data_class import dataclass
from corollary.database.arguments import PATH, checked
from corollary.spark.access import DataSourceOptions, bad_option, open_source
from corollary.spark.parts import QueryPart, relation_parts, spark_batches, spark_schema
from corollary.spark.reading import source_shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_FUNCTION, PARTS_FUNCTION, ROWS_FUNCTION = (
    "corollary_query",
    "corollary_parts",
    "corollary_rows",
)


@checked(warehouse=PATH, prefix=str, reader=str, token=str)
def attach(
    spark: "SparkSession",
    warehouse: str | Path,
    prefix: str = "",
    *,
    reader: str | None = None,
    token: str | None = None,
) -> list[str]:
    """Show the relations of a warehouse as temporary views of a session.

    Tasks read the files of a relation, as of the last commit whenever a query is analysed. The
    table function `corollary_query(warehouse, goal)` answers goals and questions in SQL.

    Args:
        spark: the session.
        warehouse: a directory that Spark's processes see, or a URL.
        prefix: what the names of the views begin with; a `.` in a name becomes `_`.
        reader: as whom: only what was granted to this name is shown.
        token: of whoever reads; it is looked up here, and not in the views.

    Returns:
        The names of the views.

    Raises:
        WarehouseError: there is no warehouse.
        AccessError: the token is not valid.
    """
    path = str(warehouse) if "://" in str(warehouse) else str(Path(warehouse).absolute())
    spark.udtf.register(QUERY_FUNCTION, cast(Any, udtf)(CorollaryQuery, useArrow=False))
    spark.udtf.register(PARTS_FUNCTION, cast(Any, udtf)(CorollaryParts, useArrow=False))
    views = []
    with open_source(DataSourceOptions(_options(path, reader, token))) as source:
        for name in source.visible():
            shape = source.relation(name)
            views.append(f"{prefix}{name.replace('.', '_')}")
            rows, type_ = f"{ROWS_FUNCTION}_{views[-1]}", from_arrow_schema(spark_schema(shape))
            spark.udf.register(rows, cast(Any, arrow_udf)(rows_of_parts, ArrayType(type_)))
            asked = (path, name) if source.reader is None else (path, name, source.reader)
            arguments = ", ".join(map(_literal, asked))
            tasks = len(relation_parts(source, shape)) or 1
            spark.sql(
                f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(views[-1])} AS "  # noqa: S608 - quoted
                f"SELECT inline({_quoted(rows)}(part)) FROM "
                f"(SELECT /*+ REPARTITION({tasks}) */ part FROM {PARTS_FUNCTION}({arguments}))"
            )
    return views


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass
class PlannedParts(AnalyzeResult):
    """What was planned for a use of a view; Spark hands it to the tasks."""

    parts: tuple[bytes, ...] = field(default=())


class CorollaryParts:
    """The table function of the views: a row for each part of a relation, pickled."""

    def __init__(self, planned: PlannedParts) -> None:
        self._parts = planned.parts

    @staticmethod
    def analyze(
        warehouse: AnalyzeArgument, relation: AnalyzeArgument, reader: AnalyzeArgument | None = None
    ) -> PlannedParts:
        """Plan what is read, as of the last commit."""
        given = _options(str(warehouse.value), None if reader is None else reader.value, None)
        with open_source(DataSourceOptions({**given, "relation": str(relation.value)})) as source:
            shape = source_shape(source)
            parts = [pickle.dumps((each, shape)) for each in relation_parts(source, shape)]
        return PlannedParts(StructType().add("part", BinaryType()), parts=tuple(parts))

    def eval(self, *_: str) -> Iterator[tuple[bytes]]:
        """Yield the parts."""
        yield from ((each,) for each in self._parts)


def rows_of_parts(parts: pa.Array) -> pa.Array:
    """Return the rows of each part as an array of structs; Spark calls it in tasks."""
    planned = [pickle.loads(each) for each in parts.to_pylist()]  # noqa: S301 - our own made it
    schema = spark_schema(planned[0][1])
    tables = [
        pa.Table.from_batches(list(spark_batches(part.tables(), shape)), schema)
        for part, shape in planned
    ]
    offsets = pa.array(np.cumsum([0, *(each.num_rows for each in tables)]), pa.int32())
    columns = [each.combine_chunks() for each in pa.concat_tables(tables).columns]
    structs = pa.StructArray.from_arrays(columns, fields=list(schema))
    return pa.ListArray.from_arrays(offsets, structs)


def _options(path: str, reader: str | None, token: str | None) -> dict[str, str]:
    every = {"path": path, "reader": reader, "token": token}
    return {name: value for name, value in every.items() if value is not None}


class CorollaryQuery:
    """The table function: its columns are those of the question, which Spark asks for first."""

    @staticmethod
    def analyze(
        warehouse: AnalyzeArgument,
        goal: AnalyzeArgument,
        reader: AnalyzeArgument | None = None,
        token: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:
        """Return the columns of the answers."""
        given = [None if each is None else each.value for each in (warehouse, goal, reader, token)]
        if (
            any(each is not None and not isinstance(each, str) for each in given)
            or None in given[:2]
        ):
            raise bad_option(
                f"`{QUERY_FUNCTION}` takes constant texts", f"`{QUERY_FUNCTION}('wh', 'p(x)')`"
            )
        with open_source(_question(*given)) as source:
            return AnalyzeResult(from_arrow_schema(spark_schema(source_shape(source))))

    def eval(
        self, warehouse: str, goal: str, reader: str | None = None, token: str | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the answers; Spark takes them row by row."""
        options = _question(warehouse, goal, reader, token)
        with open_source(options) as source:
            shape = source_shape(source)
        for batch in spark_batches(QueryPart(options, shape).tables(), shape):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _question(warehouse: Any, goal: Any, reader: Any, token: Any) -> DataSourceOptions:
    return DataSourceOptions.of({**_options(warehouse, reader, token), "query": goal})
