"""The functions of SQL: one table from their names and arguments to functors and types."""

from corollary.frontends.sql.binder.functions.table import check_accepted, function_call

__all__ = ["check_accepted", "function_call"]
