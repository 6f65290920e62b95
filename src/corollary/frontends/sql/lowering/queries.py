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
from corollary.frontends.sql import query_tree as tree
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
from corollary.source import Span


class QueryLowering(ViewLowering):
    """The lowering of one view."""

    def __init__(self, draft: ViewDraft, query: tree.Query) -> None:
        used = set()
        readers: Counter[str] = Counter()
        for part in tree.walk(query):
            if isinstance(part, tree.ColumnReference):
                used.add((part.source, part.column))
            elif isinstance(part, tree.SubquerySource) and part.cte is not None:
                readers[part.cte] += 1
        super().__init__(draft, frozenset(used), readers)

    def define(self, query: tree.Query, relation: str, body: RuleBody) -> LoweredQuery:
        """Make the rules of a query; those without a place of their own have that of the query."""
        with self.draft.placed(query.span):
            return self._define(query, relation, body)

    def _define(self, query: tree.Query, relation: str, body: RuleBody) -> LoweredQuery:
        match query:
            case tree.Select(grouping_sets=grouping_sets):
                if grouping_sets is not None:
                    expanded = selects.expand_grouping_sets(query)
                    return self.define(expanded, relation, body)
                return selects.define_select(self, query, relation, body)
            case tree.SetOperation():
                return set_operations.define_set_operation(self, query, relation, body)
            case tree.Values():
                return set_operations.define_values(self, query, relation, body)
            case tree.ConstantRows():
                return set_operations.define_rows(self, query, relation, body)
            case tree.Ordered():
                return selects.define_ordered(self, query, relation, body)
            case tree.WithRecursive():
                return recursion.define_recursive(self, query, relation, body)
            case _:
                assert_never(query)

    def add_source(self, source: tree.Source, body: RuleBody) -> None:
        """Add a source to a body."""
        match source:
            case tree.TableSource():
                joins.add_table(self, source, body)
            case tree.SubquerySource():
                joins.add_query(self, source, body)
            case tree.RecursiveSource():
                recursion.add_recursive(self, source, body)
            case tree.RangeSource():
                joins.add_range(self, source, body)
            case tree.JoinedSource():
                joins.add_join(self, source, body)
            case _:
                assert_never(source)

    def add_condition(self, condition: tree.Expression | None, body: RuleBody) -> None:
        """Add that a condition is true."""
        expressions.add_condition(self, condition, body)

    def term(
        self,
        expression: tree.Expression,
        body: RuleBody,
        *,
        terms: Mapping[tree.Expression, Term] | None = None,
        drops_null: bool = False,
    ) -> Term:
        """Return the term of an expression."""
        known = body.terms if terms is None else terms
        return expressions.term_of(self, expression, body, known, drops_null=drops_null)


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
    columns: tuple[tree.QueryColumn, ...]
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

    query: tree.Query
    order: tuple[tuple[int, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    width: int | None = None


def question_of(query: tree.Query) -> SqlQuestion:
    """Return a query without the order at its top, and that order."""
    ordered = query.query if isinstance(query, tree.WithRecursive) else query
    if not isinstance(ordered, tree.Ordered):
        return SqlQuestion(query)
    asked: tree.Query = ordered.query
    if isinstance(query, tree.WithRecursive):
        asked = replace(query, query=asked, columns=tree.output_columns(asked))
    return SqlQuestion(asked, ordered.order, ordered.limit, ordered.offset, ordered.width)


def lower_view(
    name: str, query: tree.Query, *, is_materialized: bool, place: Span | None = None
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
    result = lowering.define(query, name, RuleBody(draft))
    columns = tuple(
        tree.QueryColumn(column, type_)
        for column, type_ in zip(result.names, result.types, strict=True)
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
