"""From the query of a view to its relations and rules: the dispatcher over all kinds of queries.

The other modules of the lowering call it back through `ViewLowering`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import assert_never

from corollary.core.logic import Clause, Term, Value
from corollary.core.program import Declaration
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.frontends.sql.lowering import (
    expressions,
    joins,
    recursion,
    selects,
    set_operations,
)
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering
from corollary.frontends.sql.lowering.draft import ViewDraft
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantRows,
    Expression,
    JoinedSource,
    Ordered,
    Query,
    QueryColumn,
    RangeSource,
    RecursiveSource,
    Select,
    SetOperation,
    Source,
    SubquerySource,
    TableSource,
    Values,
    WithRecursive,
    output_columns,
    walk,
)
from corollary.source import Span


class QueryLowering(ViewLowering):
    """The lowering of one view."""

    def __init__(self, draft: ViewDraft, query: Query) -> None:
        used = set()
        readers: Counter[str] = Counter()
        for part in walk(query):
            if isinstance(part, ColumnReference):
                used.add((part.source, part.column))
            elif isinstance(part, SubquerySource) and part.cte is not None:
                readers[part.cte] += 1
        super().__init__(draft, frozenset(used), readers)

    def define(
        self, query: Query, relation: str, body: RuleBody, *, storage: str = "virtual"
    ) -> LoweredQuery:
        """Make the rules of a query; those without a place of their own have that of the query."""
        outside, self.draft.span = self.draft.span, getattr(query, "span", None) or self.draft.span
        try:
            return self._define(query, relation, body, storage=storage)
        finally:
            self.draft.span = outside

    def _define(self, query: Query, relation: str, body: RuleBody, *, storage: str) -> LoweredQuery:
        match query:
            case Select(grouping_sets=grouping_sets):
                if grouping_sets is not None:
                    expanded = selects.expand_grouping_sets(query)
                    return self.define(expanded, relation, body, storage=storage)
                return selects.define_select(self, query, relation, body, storage=storage)
            case SetOperation():
                return set_operations.define_set_operation(
                    self, query, relation, body, storage=storage
                )
            case Values():
                return set_operations.define_values(self, query, relation, body, storage=storage)
            case ConstantRows():
                return set_operations.define_rows(self, query, relation, body, storage=storage)
            case Ordered():
                return selects.define_ordered(self, query, relation, body, storage=storage)
            case WithRecursive():
                return recursion.define_recursive(self, query, relation, body, storage=storage)
            case _:
                assert_never(query)

    def open_select(self, select: Select, body: RuleBody) -> None:
        """Add the source and the condition of a block to a body."""
        if select.source is not None:
            self.add_source(select.source, body)
        self.add_condition(select.where, body)

    def add_source(self, source: Source, body: RuleBody) -> None:
        """Add a source to a body."""
        match source:
            case TableSource():
                joins.add_table(self, source, body)
            case SubquerySource():
                joins.add_query(self, source, body)
            case RecursiveSource():
                recursion.add_recursive(self, source, body)
            case RangeSource():
                joins.add_range(self, source, body)
            case JoinedSource():
                joins.add_join(self, source, body)
            case _:
                assert_never(source)

    def add_condition(self, condition: Expression | None, body: RuleBody) -> None:
        """Add that a condition is true."""
        expressions.add_condition(self, condition, body)

    def term(
        self,
        expression: Expression,
        body: RuleBody,
        *,
        terms: Mapping[Expression, Term] | None = None,
        drops_null: bool = False,
    ) -> Term:
        """Return the term of an expression."""
        known = body.terms if terms is None else terms
        return expressions.term_of(self, expression, body, known, drops_null=drops_null)

    def single_row(self, query: Query, body: RuleBody, *, drops_null: bool) -> Term | None:
        """Return the value of a query that always has one row."""
        return selects.single_row(self, query, body, drops_null=drops_null)


# --- views ---------------------------------------------------------------------------------------


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
