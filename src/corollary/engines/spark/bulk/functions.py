"""Registers functions of our own with a session of Spark."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.engines.spark.bulk.udf_code import udf_code
from corollary.sqlgen.nodes import Node
from corollary.sqlgen.udf import Udf, udfs_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession


class SessionFunctions:
    """The functions of our own that a session has; each is registered once."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._known: set[str] = set()

    def register(self, queries: "Iterable[Node]") -> None:
        """Register the functions that queries call."""
        for name, function in udfs_in(queries).items():
            if name not in self._known:
                self._session.udf.register(name, _user_function(function))
                self._known.add(name)


def _user_function(function: Udf) -> Any:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    run, result = udf_code(function)

    # Spark wants a function whose parameters it can list.
    def apply(*columns: pa.Array) -> pa.Array:
        return run(*columns)

    return arrow_udf(apply, result)
