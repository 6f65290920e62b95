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
from typing import TYPE_CHECKING, Any, Self, cast

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
from corollary.spark.parts import relation_portions, spark_schema
from corollary.spark.reading import source_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_FUNCTION, PARTS_FUNCTION = "corollary_query", "corollary_parts"


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
    from corollary.serve.handlers.relations import visible_relations

    path = str(warehouse) if "://" in str(warehouse) else str(Path(warehouse).absolute())
    spark.udtf.register(QUERY_FUNCTION, cast(Any, udtf)(CorollaryQuery, useArrow=False))
    spark.udtf.register(PARTS_FUNCTION, cast(Any, udtf)(CorollaryParts, useArrow=False))
    views = []
    given = {"path": path, "reader": reader, "token": token}
    options = {name: each for name, each in given.items() if each is not None}
    with open_source(DataSourceOptions(options)) as source:
        for name, relation in visible_relations(source.outline).items():
            shape = source.shape(relation)
            views.append(f"{prefix}{name.replace('.', '_')}")
            rows, type_ = f"corollary_rows_{views[-1]}", from_arrow_schema(spark_schema(shape))
            spark.udf.register(rows, cast(Any, arrow_udf)(rows_of_parts, ArrayType(type_)))
            asked = (path, name) if source.reader is None else (path, name, source.reader)
            arguments = ", ".join(map(_literal, asked))
            tasks = len(relation_portions(source, name)) or 1
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


def rows_of_parts(pickled: pa.Array) -> pa.Array:
    """Return the rows of each part as an array of structs; Spark calls it in tasks."""
    parts = [pickle.loads(each) for each in pickled.to_pylist()]  # noqa: S301 - our own made it
    schema = spark_schema(parts[0].shape)
    tables = [pa.Table.from_batches(list(each.batches()), schema) for each in parts]
    offsets = pa.array(np.cumsum([0, *(each.num_rows for each in tables)]), pa.int32())
    columns = [each.combine_chunks() for each in pa.concat_tables(tables).columns]
    structs = pa.StructArray.from_arrays(columns, fields=list(schema))
    return pa.ListArray.from_arrays(offsets, structs)


@dataclass
class PlannedParts(AnalyzeResult):
    """What was planned for a use of a table function; Spark hands it to the tasks."""

    parts: tuple[bytes, ...] = field(default=())

    @classmethod
    def of(cls, schema: StructType | None = None, **given: AnalyzeArgument | None) -> Self:
        """Plan what options ask for, as of the last commit; NULL is as if it were not given.

        Raises:
            InputError: `C1570`, one is not a constant text.
        """
        options: dict[str, str] = {}
        for name, each in given.items():
            if each is not None and isinstance(each.value, str):
                options[name] = each.value
            elif each is not None and (each.value is not None or not each.isConstantExpression):
                cure = f"`{QUERY_FUNCTION}('wh', 'p(x)')`"
                raise bad_option(f"`{QUERY_FUNCTION}` takes constant texts", cure)
        with open_source(DataSourceOptions.of(options)) as source:
            parts = source_parts(source)
        schema = schema or from_arrow_schema(spark_schema(parts[0].shape))
        return cls(schema, parts=tuple(map(pickle.dumps, parts)))


class CorollaryParts:
    """The table function of the views: a row for each part of a relation, pickled."""

    def __init__(self, planned: PlannedParts) -> None:
        self._parts = planned.parts

    @staticmethod
    def analyze(
        warehouse: AnalyzeArgument, relation: AnalyzeArgument, reader: AnalyzeArgument | None = None
    ) -> PlannedParts:
        """Plan what is read."""
        schema = StructType().add("part", BinaryType())
        return PlannedParts.of(schema, path=warehouse, relation=relation, reader=reader)

    def eval(self, *_: str) -> Iterator[tuple[Any, ...]]:
        """Yield the parts."""
        yield from ((each,) for each in self._parts)


class CorollaryQuery(CorollaryParts):
    """The table function of questions: its columns are those of the answers."""

    @staticmethod
    def analyze(
        warehouse: AnalyzeArgument,
        goal: AnalyzeArgument,
        reader: AnalyzeArgument | None = None,
        token: AnalyzeArgument | None = None,
    ) -> PlannedParts:
        """Return the columns of the answers, and what is asked."""
        return PlannedParts.of(path=warehouse, query=goal, reader=reader, token=token)

    def eval(self, *_: str) -> Iterator[tuple[Any, ...]]:
        """Yield the answers; Spark takes them row by row."""
        for part in self._parts:
            for batch in pickle.loads(part).batches():  # noqa: S301 - our own made it
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
