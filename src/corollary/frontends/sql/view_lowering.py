"""From the query of a view to its relations and rules."""

from collections.abc import Mapping
from dataclasses import field, replace

from corollary.core.logic import Clause, Value
from corollary.core.program import Declaration
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.draft import ViewDraft
from corollary.frontends.sql.lowering.queries import QueryLowering
from corollary.frontends.sql.query_tree import (
    Ordered,
    Query,
    QueryColumn,
    WithRecursive,
    output_columns,
)
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class LoweredView:
    """A view as relations and rules.

    Attributes:
        columns: those of the view, with the types that its rules give.
        is_bag: whether it has copies: its rules then are those of `v.rows`.
        keys: the sets of columns, by number, that tell its rows apart.
        rows: those of relations that are data of a question.
    """

    declarations: tuple[Declaration, ...]
    clauses: tuple[Clause, ...]
    columns: tuple[QueryColumn, ...]
    is_bag: bool
    keys: tuple[frozenset[int], ...]
    warnings: tuple[Diagnostic, ...] = ()
    rows: Mapping[str, tuple[tuple[Value, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlQuestion:
    """A query whose order is applied to its answer.

    Attributes:
        query: the query without the order at its top.
        order: column, whether descending, whether nulls come first.
        limit: how many rows are answered, at most.
        offset: how many rows are left out before them.
        width: how many columns are shown; the others are only for the order.
    """

    query: Query
    order: tuple[tuple[int, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    width: int | None = None


def question_of(query: Query) -> SqlQuestion:
    """Return a query without the order at its top, and that order."""
    ordered = query.query if isinstance(query, WithRecursive) else query
    if not isinstance(ordered, Ordered):
        return SqlQuestion(query)
    asked: Query = ordered.query
    if isinstance(query, WithRecursive):
        asked = replace(query, query=asked, columns=output_columns(asked))
    return SqlQuestion(asked, ordered.order, ordered.limit, ordered.offset, ordered.width)


def lower_view(
    name: str, query: Query, *, is_materialized: bool, place: Span | None = None
) -> LoweredView:
    """Return the relations and rules of a view.

    Args:
        name: that of the view.
        query: what it shows.
        is_materialized: whether it is stored.
        place: the place of all rules, if they have none of their own.

    Raises:
        InputError: the query cannot be given exactly.
    """
    draft = ViewDraft(name, is_materialized, place=place)
    lowering = QueryLowering(draft, query)
    storage = "stored" if is_materialized else "virtual"
    result = lowering.define(query, name, RuleBody(draft), storage=storage)
    columns = tuple(
        QueryColumn(column, type_) for column, type_ in zip(result.names, result.types, strict=True)
    )
    return LoweredView(
        tuple(draft.declarations),
        tuple(draft.clauses),
        columns,
        result.is_bag,
        result.keys,
        tuple(draft.warnings),
        draft.rows,
    )
