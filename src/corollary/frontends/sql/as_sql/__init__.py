"""Programs as SQL for other engines: their tables and views, for Spark or DuckDB to read."""

from corollary.frontends.sql.as_sql.functions import SqlDialectName
from corollary.frontends.sql.as_sql.script import SqlStatement, print_sql, script_of

__all__ = ["SqlDialectName", "SqlStatement", "print_sql", "script_of"]
