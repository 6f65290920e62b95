"""The columns of queries: those that the user sees, and their names."""

from collections.abc import Sequence
from dataclasses import replace

from corollary.errors import InputError
from corollary.frontends.sql.query_tree import Query, QueryColumn, Select, output_columns
from corollary.frontends.sql.statements.tokens import SqlName
from corollary.source import Span


def visible_columns(query: Query) -> tuple[QueryColumn, ...]:
    """Return the columns of a query that are the user's."""
    columns = output_columns(query)
    width = getattr(query, "width", len(columns))
    return columns[:width]


def with_column_names(
    name: str, query: Query, columns: Sequence[SqlName], span: Span | None
) -> Query:
    """Return a query whose columns have other names, if there are any; check that they differ.

    Raises:
        InputError: there are more or fewer names than columns, or two are the same.
    """
    found = output_columns(query)
    visible = visible_columns(query)
    if columns:
        if len(columns) != len(visible):
            raise InputError.of(
                "C1370",
                f"The names of `{name}` are {len(columns)}, and the columns of its query "
                f"{len(visible)}.",
                columns[0].span,
                "name each column of the query once",
            )
        renamed = tuple(
            replace(column, name=given.text, span=given.span)
            for column, given in zip(visible, columns, strict=True)
        )
        query = rename_columns(query, (*renamed, *found[len(visible) :]))
    seen: set[str] = set()
    for column in visible_columns(query):
        if column.name.lower() in seen:
            raise InputError.of(
                "C1370",
                f"`{name}` has two columns `{column.name}`; case does not matter.",
                column.span or span,
                "give one of them another name with `AS`",
            )
        seen.add(column.name.lower())
    return query


def rename_columns(query: Query, columns: tuple[QueryColumn, ...]) -> Query:
    """Return a query whose output has other columns."""
    if isinstance(query, Select):
        pairs = zip(columns, query.columns, strict=True)
        return replace(query, columns=tuple((column, each) for column, (_, each) in pairs))
    return replace(query, columns=columns)


def distinct_columns(columns: Sequence[QueryColumn]) -> tuple[QueryColumn, ...]:
    """Return columns whose names differ."""
    seen: set[str] = set()
    found: list[QueryColumn] = []
    for column in columns:
        name, number = column.name, 1
        while name.lower() in seen:
            number += 1
            name = f"{column.name}{number}"
        seen.add(name.lower())
        found.append(replace(column, name=name))
    return tuple(found)
