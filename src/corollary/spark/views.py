"""A warehouse in a session of Spark: a temporary view for each relation, and a table function."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from corollary.database.arguments import PATH, checked
from corollary.spark.access import DataSourceOptions, bad_option, open_source
from corollary.spark.parts import QueryPart, spark_batches, spark_schema
from corollary.spark.reading import source_shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_FUNCTION = "corollary_query"


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

    Tasks read the files of a relation, as of the last commit when a view is first read: Spark keeps
    the plan of a view, so attach again to see later commits. The table function
    `corollary_query(warehouse, goal)` answers goals and questions in SQL.

    Args:
        spark: the session.
        warehouse: a directory that Spark's processes see, or a URL.
        prefix: what the names of the views begin with; a `.` in a name becomes `_`.
        reader: as whom: only what was granted to this name is shown.
        token: of whoever reads.

    Returns:
        The names of the views.

    Raises:
        WarehouseError: there is no warehouse.
        AccessError: the token is not valid.
    """
    path = str(warehouse) if "://" in str(warehouse) else str(Path(warehouse).absolute())
    asked = _options(path, reader, token)
    with open_source(DataSourceOptions(asked)) as source:
        views = {f"{prefix}{name.replace('.', '_')}": name for name in source.visible()}
    for view, name in views.items():
        frame = spark.read.format("corollary").options(**asked, relation=name).load()
        frame.createOrReplaceTempView(view)
    spark.udtf.register(QUERY_FUNCTION, cast(Any, udtf)(CorollaryQuery, useArrow=False))
    return list(views)


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
