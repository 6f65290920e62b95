"""Views, tables and questions in SQL (Spark's dialect), which become rules.

sqlglot is imported by the first call of an entry point, not with the package.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from corollary.core.logic import Value
from corollary.source import SourceFile

if TYPE_CHECKING:
    from sqlglot import exp

    from corollary.frontends.sql.catalog import SqlCatalog
    from corollary.frontends.sql.query_tree import Query


def bind_query(
    query: "str | exp.Expr",
    catalog: "SqlCatalog",
    file: SourceFile | None = None,
    parameters: Mapping[str, Value] | None = None,
) -> "Query":
    """Return a query with its names, types and functions resolved: see `binder.bind`."""
    from corollary.frontends.sql.binder import bind

    return bind.bind_query(query, catalog, file, parameters)
