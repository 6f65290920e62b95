"""One block: SELECT … FROM … WHERE … GROUP BY … HAVING …, and the ORDER BY that belongs to it."""

from dataclasses import replace

from sqlglot import exp

from corollary.data_class import dataclass
from corollary.frontends.sql.binder.expressions import ExpressionBinder
from corollary.frontends.sql.binder.grouping import (
    Grouping,
    GroupReader,
    has_aggregate,
    ordinal_of,
)
from corollary.frontends.sql.binder.names import near_names, qualifier_of
from corollary.frontends.sql.binder.scopes import Scope, ScopeColumn
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.sources import QueryReader, SourceBinder
from corollary.frontends.sql.binder.windows import over_grouping_sets
from corollary.frontends.sql.query_tree import Expression, QueryColumn, Select, Source

CLAUSES = (
    *("expressions", "distinct", "from_", "joins", "where", "group", "having", "windows"),
    *("with_", "order", "limit", "offset"),
)
"""The parts of a SELECT that are known; the last four are read by the query around it."""

OrderTerm = tuple[int, bool, bool]
"""A column, whether descending, whether nulls come first."""


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A block with the terms of its order; `width` columns are the user's, the others hidden."""

    select: Select
    order: tuple[OrderTerm, ...]
    width: int


def bind_select(
    node: exp.Select,
    order: exp.Order | None,
    around: Scope,
    session: BindingSession,
    read_query: QueryReader,
) -> BoundSelect:
    """Return a block; `around` is its scope before its sources are known."""
    session.check(node, *CLAUSES)
    source, scope = SourceBinder(session, around, read_query).bind_from(node)
    return _SelectBinder(node, session, scope).bind(source, order)


class _SelectBinder:
    """Binds the clauses of a block after its FROM."""

    def __init__(self, node: exp.Select, session: BindingSession, scope: Scope) -> None:
        self.node = node
        self.session = session
        self.scope = scope
        self.items: list[exp.Expr] = list(node.expressions)
        aliases = [
            (item.alias, item.this) if isinstance(item, exp.Alias) else ("", item)
            for item in self.items
        ]
        self.aliases: tuple[tuple[str, exp.Expr], ...] = tuple(aliases)
        self.windows = self._windows()

    def bind(self, source: Source | None, order: exp.Order | None) -> BoundSelect:
        """Return the block."""
        where = self._condition(
            "where", "WHERE", ExpressionBinder(self.session, self.scope, "WHERE")
        )
        grouping = self._grouping(order)
        output = self._output_binder(grouping)
        columns = [
            pair
            for index, item in enumerate(self.items)
            for pair in self._item(item, index, output)
        ]
        having = None
        if self.node.args.get("having") is not None:
            binder = replace(output, clause="HAVING", with_windows=False, aliases_first=True)
            having = self._condition("having", "HAVING", binder)
        width = len(columns)
        is_distinct = self._is_distinct()
        terms = self._order(order, columns, output, is_distinct)
        select = Select(
            tuple(columns),
            source,
            where,
            None if grouping is None else grouping.keys,
            None if grouping is None else grouping.sets,
            having,
            is_distinct,
            self.session.span(self.node),
        )
        return BoundSelect(over_grouping_sets(select, self.session), terms, width)

    def _windows(self) -> dict[str, exp.Window]:
        found: dict[str, exp.Window] = {}
        for window in self.node.args.get("windows") or []:
            name = window.name.lower()
            if name in found:
                message = f"The window `{window.name}` is defined twice."
                raise self.session.error("C1317", message, window, "give them different names")
            found[name] = window
        return found

    def _condition(self, part: str, clause: str, binder: ExpressionBinder) -> Expression | None:
        node = self.node.args.get(part)
        if node is None:
            return None
        self.session.check(node, "this")
        return binder.bind_condition(node.this, f"`{clause}`")

    def _is_distinct(self) -> bool:
        node = self.node.args.get("distinct")
        if node is None:
            return False
        self.session.check(node)
        return True

    # --- grouping ------------------------------------------------------------------------------

    def _grouping(self, order: exp.Order | None) -> Grouping | None:
        group = self.node.args.get("group")
        if group is None:
            having = self.node.args.get("having")
            parts = [*self.items, *([] if order is None else order.expressions)]
            if having is None and not any(has_aggregate(part) for part in parts):
                return None
            return Grouping((), None, {})
        context = ExpressionBinder(self.session, self.scope, "GROUP BY", self.aliases)
        return GroupReader(context, self.items).read(group)

    def _output_binder(self, grouping: Grouping | None) -> ExpressionBinder:
        binder = ExpressionBinder(
            self.session,
            self.scope,
            "SELECT",
            self.aliases,
            windows=self.windows,
            with_windows=True,
        )
        if grouping is None:
            return binder
        has_empty = grouping.sets is not None and frozenset() in grouping.sets
        return replace(
            binder,
            keys=grouping.after,
            is_one_group=not grouping.keys or has_empty,
            with_aggregates=True,
            has_grouping_sets=grouping.sets is not None,
        )

    # --- columns -------------------------------------------------------------------------------

    def _item(
        self, item: exp.Expr, index: int, output: ExpressionBinder
    ) -> list[tuple[QueryColumn, Expression]]:
        """Return the columns that one term of the SELECT stands for."""
        if isinstance(item, exp.Star):
            return self._starred(item, None, self.scope.visible, output)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            self.session.check(item, "this", "table", "db", "catalog")
            return self._starred(item.this, item, self._columns_of(item), output)
        binder = replace(output, aliases=self.aliases[:index])
        if isinstance(item, exp.Alias):
            self.session.check(item, "this", "alias")
            expression, name, place = binder.bind(item.this), item.alias, item.args["alias"]
        else:
            expression, place = binder.bind(item), item
            name = self._default_name(item)
        return [(QueryColumn(name, expression.type, self.session.span(place)), expression)]

    def _default_name(self, item: exp.Expr) -> str:
        """Return the name of a column without alias: that of the column, or the text itself."""
        while isinstance(item, exp.Paren):
            item = item.this
        if isinstance(item, exp.Column):
            found = self.scope.find(item.name, qualifier_of(item))
            return found[0].name if found else item.name
        return " ".join(self.session.text(item).split()) or "column"

    def _starred(
        self,
        star: exp.Star,
        item: exp.Expr | None,
        found: tuple[ScopeColumn, ...],
        output: ExpressionBinder,
    ) -> list[tuple[QueryColumn, Expression]]:
        self.session.check(star, "except_")
        place = item if item is not None else star
        if not found:
            raise self.session.error("C1303", "`*` needs a FROM.", place, "name the columns")
        left_out = {each.name.lower() for each in star.args.get("except_") or []}
        known = {column.name.lower() for column in found}
        for each in star.args.get("except_") or []:
            if each.name.lower() not in known:
                note = near_names(each.name, [c.name for c in found], "the columns are")
                raise self.session.error("C1303", f"There is no column `{each.name}`.", each, note)
        columns = []
        for column in found:
            if column.name.lower() in left_out:
                continue
            expression = column.expression
            if output.keys is not None:
                if expression not in output.keys:
                    message = f"`{column.name}` is neither grouped nor inside an aggregate."
                    note = "name the columns that are grouped, instead of `*`"
                    raise self.session.error("C1313", message, place, note)
                expression = output.keys[expression]
            span = self.session.span(place)
            columns.append((QueryColumn(column.name, expression.type, span), expression))
        return columns

    def _columns_of(self, item: exp.Column) -> tuple[ScopeColumn, ...]:
        qualifier = qualifier_of(item) or ""
        sources = [source for source in self.scope.sources if source.is_called(qualifier)]
        if not sources:
            known = [source.name for source in self.scope.sources]
            note = near_names(qualifier, known, "the sources are")
            message = f"`{qualifier}` is not a source of this query."
            raise self.session.error("C1303", message, item, note)
        if len(sources) > 1:
            note = "give the sources different aliases"
            raise self.session.error(
                "C1304", f"`{qualifier}` can mean several sources.", item, note
            )
        return sources[0].columns

    # --- order ---------------------------------------------------------------------------------

    def _order(
        self,
        order: exp.Order | None,
        columns: list[tuple[QueryColumn, Expression]],
        output: ExpressionBinder,
        is_distinct: bool,
    ) -> tuple[OrderTerm, ...]:
        """Return the terms of ORDER BY; those that are no columns yet are appended to them."""
        if order is None:
            return ()
        self.session.check(order, "expressions")
        binder = replace(output, clause="ORDER BY", aliases_first=True)
        names = [column for column, _ in columns]
        terms: list[OrderTerm] = []
        for node in order.expressions:
            for term, place in ordered_terms(node, names, self.session):
                if term is not None:
                    terms.append((term, *directions(node)))
                    continue
                expression = binder.bind(place)
                known = [each for _, each in columns]
                if expression not in known:
                    if is_distinct:
                        message = "With DISTINCT, rows are ordered by columns of the SELECT only."
                        raise self.session.error("C1314", message, place, "add it to the SELECT")
                    hidden = QueryColumn(f"order {len(columns) + 1}", expression.type)
                    columns.append((hidden, expression))
                    known.append(expression)
                terms.append((known.index(expression), *directions(node)))
        return tuple(terms)


def directions(node: exp.Expr) -> tuple[bool, bool]:
    """Return whether a term of an order is descending, and whether nulls come first."""
    return bool(node.args.get("desc")), bool(node.args.get("nulls_first"))


def ordered_terms(
    node: exp.Expr, columns: list[QueryColumn], session: BindingSession
) -> list[tuple[int | None, exp.Expr]]:
    """Return the columns that a term of ORDER BY names; None where it is another expression."""
    if not isinstance(node, exp.Ordered):
        raise session.unsupported(node)
    session.check(node, "this", "desc", "nulls_first")
    term = node.this
    if isinstance(term, exp.Var) and term.name.upper() == "ALL":
        return [(index, term) for index in range(len(columns))]
    position = ordinal_of(term)
    if position is not None:
        if not 1 <= position <= len(columns):
            message = f"There is no column {position} in the SELECT."
            raise session.error("C1314", message, term, f"write a number from 1 to {len(columns)}")
        return [(position - 1, term)]
    if isinstance(term, exp.Column) and qualifier_of(term) is None:
        named = [i for i, c in enumerate(columns) if c.name.lower() == term.name.lower()]
        if len(named) == 1:
            return [(named[0], term)]
    return [(None, term)]
