"""Queries of all kinds: the dispatcher that the other modules call back."""

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from corollary.core.logic import Term
from corollary.frontends.sql.lowering import (
    conditions,
    expressions,
    joins,
    recursion,
    selects,
    set_operations,
    top_rows,
)
from corollary.frontends.sql.lowering.bodies import RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering
from corollary.frontends.sql.lowering.draft import ViewDraft
from corollary.frontends.sql.lowering.grouping_sets import expand_grouping_sets
from corollary.frontends.sql.lowering.tree_walk import walk
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantRows,
    Expression,
    JoinedSource,
    Ordered,
    Query,
    RecursiveSource,
    Select,
    SetOperation,
    Source,
    SubquerySource,
    TableSource,
    Values,
    WithRecursive,
)


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
                    expanded = expand_grouping_sets(query)
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
                return top_rows.define_ordered(self, query, relation, body, storage=storage)
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
            case JoinedSource():
                joins.add_join(self, source, body)
            case _:
                assert_never(source)

    def add_condition(self, condition: Expression | None, body: RuleBody) -> None:
        """Add that a condition is true."""
        conditions.add_condition(self, condition, body)

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
