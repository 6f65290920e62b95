"""From a statement to its query tree: blocks, set operations, VALUES, WITH, ORDER BY, LIMIT."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from corollary.core.logic import Value
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.frontends.sql.binder.expressions import ExpressionBinder, row_parts
from corollary.frontends.sql.binder.recursion import RecursionBinder
from corollary.frontends.sql.binder.scopes import CommonTable, Scope, source_scope
from corollary.frontends.sql.binder.select import (
    BoundSelect,
    OrderTerm,
    bind_select,
    directions,
    ordered_terms,
)
from corollary.frontends.sql.binder.session import UNTYPED, BindingSession, UnknownTypes
from corollary.frontends.sql.binder.values.common_types import common_type
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.values.operators import mismatch
from corollary.frontends.sql.binder.widening import finished, with_types, wrapped
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.parse import span_of
from corollary.frontends.sql.query_tree import (
    ColumnReference,
    ConstantValue,
    Expression,
    Ordered,
    Query,
    QueryColumn,
    RecursiveTable,
    Select,
    SetOperation,
    SetOperator,
    Values,
    WithRecursive,
    output_columns,
)
from corollary.source import SourceFile

OPERATORS: dict[type[exp.Expr], SetOperator] = {
    exp.Union: SetOperator.UNION,
    exp.Intersect: SetOperator.INTERSECT,
    exp.Except: SetOperator.EXCEPT,
}
_MODIFIERS = ("with_", "order", "limit", "offset")


def _has_modifier(node: exp.Expr) -> bool:
    return any(node.args.get(part) is not None for part in _MODIFIERS)


@dataclass(frozen=True, slots=True)
class QueryBinder:
    """Binds a query and those inside it."""

    session: BindingSession

    def bind_nested(self, node: exp.Expr, scope: Scope) -> Query:
        """Return a query inside another one, which it can refer to."""
        return self.bind(node, Scope(outer=scope, tables=scope.tables))

    def bind(self, node: exp.Expr, around: Scope) -> Query:
        """Return a query; `around` is its scope before its sources are known."""
        recursive: tuple[RecursiveTable, ...] = ()
        clause = node.args.get("with_")
        if clause is not None:
            tables, recursive = self._common_tables(clause, around)
            around = replace(around, tables=tables)
        query = self._bind_ordered(node, around)
        if not recursive:
            return query
        return WithRecursive(recursive, query, output_columns(query), self.session.span(node))

    def _bind_ordered(self, node: exp.Expr, around: Scope) -> Query:
        order = node.args.get("order")
        limit, offset = self._count(node, "limit"), self._count(node, "offset") or 0
        has_tail = order is not None or limit is not None or offset > 0
        if isinstance(node, exp.Select):
            bound = bind_select(node, order, around, self.session, self.bind_nested)
        else:
            query = self._bind_body(node, around)
            if not has_tail:
                return query
            bound = self._order_any(query, order, around)
        if not has_tail:
            return bound.select
        columns = output_columns(bound.select)[: bound.width]
        query = bound.select
        return Ordered(
            query,
            bound.order,
            limit,
            offset,
            bound.width,
            columns,
            bound.has_chosen,
            self.session.span(node),
        )

    def _bind_body(self, node: exp.Expr, around: Scope) -> Query:
        match node:
            case exp.Select():
                return self._bind_ordered(node, around)
            case exp.SetOperation():
                return self._set_operation(node, around)
            case exp.Subquery():
                self.session.check(node, "this", "alias", "joins", *_MODIFIERS)
                return self.bind(node.this, around)
            case exp.Paren():
                self.session.check(node, "this")
                return self.bind(node.this, around)
            case exp.Values():
                return self._values(node, around)
            case _:
                raise self.session.unsupported(node)

    # --- order and limit -----------------------------------------------------------------------

    def _count(self, node: exp.Expr, part: str) -> int | None:
        """Return the number of LIMIT or OFFSET; None if there is none."""
        clause = node.args.get(part)
        if clause is None:
            return None
        if not isinstance(clause, exp.Limit | exp.Offset):
            raise self.session.unsupported(clause)
        self.session.check(clause, "expression")
        value = clause.args["expression"]
        if self.session.unknown is not None and isinstance(value, exp.Placeholder):
            self.session.unknown.parameters.setdefault(str(value.this), NUMBER)
            return 0
        if isinstance(value, exp.Var) and value.name.upper() == "ALL":
            return None
        found = ExpressionBinder(self.session, Scope(), part.upper()).try_bind(value)
        is_count = isinstance(found, ConstantValue) and type(found.value) is int
        if not is_count or found.value < 0:  # type: ignore[union-attr, operator]
            message = f"{part.upper()} needs a number that is not negative."
            raise self.session.error(
                "C1314", message, value, "write a literal, or a parameter `:name`"
            )
        return found.value  # type: ignore[union-attr, return-value]

    def _order_any(self, query: Query, order: exp.Order | None, around: Scope) -> BoundSelect:
        """Return a set operation or VALUES as a block, with the terms of its order."""
        columns = list(output_columns(query))
        number = self.session.next_source()
        pairs: list[tuple[QueryColumn, Expression]] = [
            (column, ColumnReference(number, index, column.type))
            for index, column in enumerate(columns)
        ]
        terms: list[OrderTerm] = []
        if order is not None:
            self.session.check(order, "expressions")
            scope = source_scope("", number, tuple(columns), around)
            binder = ExpressionBinder(self.session, scope, "ORDER BY")
            for node in order.expressions:
                for term, place in ordered_terms(node, columns, self.session):
                    if term is None:
                        expression = binder.bind(place)
                        pairs.append(
                            (QueryColumn(f"order {len(pairs) + 1}", expression.type), expression)
                        )
                        term = len(pairs) - 1
                    terms.append((term, *directions(node)))
        source = wrapped(query, number)
        return BoundSelect(
            Select(tuple(pairs), source, span=query.span), tuple(terms), len(columns)
        )

    # --- set operations ------------------------------------------------------------------------

    def _set_operation(self, node: exp.SetOperation, around: Scope) -> Query:
        """Return a set operation; a chain of hundreds is nested as deeply on its left."""
        chain: list[exp.SetOperation] = [node]
        while isinstance(chain[-1].this, exp.SetOperation) and not _has_modifier(chain[-1].this):
            chain.append(chain[-1].this)
        found = self.bind(chain[-1].this, around)
        for each in reversed(chain):
            found = self._operate(each, found, around)
        return found

    def _operate(self, node: exp.SetOperation, left: Query, around: Scope) -> Query:
        session = self.session
        session.check(node, "this", "expression", "distinct", *_MODIFIERS)
        right = self.bind(node.args["expression"], around)
        operator = OPERATORS[type(node)]
        types = self.branch_types([left, right], node)
        left, right = (with_types(each, types, session) for each in (left, right))
        columns = tuple(
            replace(column, type=self._joined_type(operator, type_, column, other))
            for column, other, type_ in zip(
                output_columns(left), output_columns(right), types, strict=True
            )
        )
        is_all = not node.args.get("distinct")
        return SetOperation(operator, is_all, left, right, columns, session.span(node))

    @staticmethod
    def _joined_type(
        operator: SetOperator, type_: Type, left: QueryColumn, right: QueryColumn
    ) -> Type:
        """Return the type of a column: INTERSECT has the nulls of both, EXCEPT of the left."""
        one, other = left.type.nullable, right.type.nullable
        match operator:
            case SetOperator.UNION:
                return type_.with_null(one or other)
            case SetOperator.INTERSECT:
                return type_.with_null(one and other)
            case SetOperator.EXCEPT:
                return type_.with_null(one)

    def branch_types(self, branches: list[Query], node: exp.Expr) -> list[Type]:
        """Return the types that the columns of several queries have together."""
        session = self.session
        widths = [len(output_columns(branch)) for branch in branches]
        if len(set(widths)) > 1:
            found = " and ".join(str(width) for width in dict.fromkeys(widths))
            message = f"The queries have {found} columns."
            raise session.error("C1315", message, node, "select as many columns in each of them")
        rows = [[ConstantValue(None, c.type) for c in output_columns(each)] for each in branches]
        names = [column.name for column in output_columns(branches[0])]
        titles = [f"Column {at}, `{name}`," for at, name in enumerate(names, 1)]
        return self._column_types(rows, titles, node)

    def _column_types(
        self,
        rows: Sequence[Sequence[Expression]],
        titles: Sequence[str],
        node: exp.Expr,
        *,
        reads_texts: bool = True,
    ) -> list[Type]:
        """Return the types that the values of rows have together, column by column."""
        types = []
        for values, title in zip(zip(*rows, strict=True), titles, strict=True):
            type_ = common_type(list(values), reads_texts=reads_texts, by_name=False)
            if type_ is None:
                site = ExpressionBinder(self.session, Scope(), "").site(node)
                raise mismatch(site, values, title)
            types.append(type_)
        return types

    # --- values --------------------------------------------------------------------------------

    def _values(self, node: exp.Values, around: Scope) -> Query:
        session = self.session
        session.check(node, "expressions", "alias", *_MODIFIERS)
        binder = ExpressionBinder(session, around, "VALUES")
        rows = []
        for row in node.expressions:
            inner = row.this if isinstance(row, exp.Paren) else row
            rows.append([binder.bind(part) for part in row_parts(inner)])
            if len(rows[-1]) != len(rows[0]):
                message = f"The first row has {len(rows[0])} values, and this one {len(rows[-1])}."
                raise session.error("C1315", message, row, "write as many values in each row")
        titles = [f"Column {at} of VALUES" for at in range(1, len(rows[0]) + 1)]
        types = self._column_types(rows, titles, node, reads_texts=False)
        typed = tuple(
            tuple(
                each if type_ == UNTYPED else convert(each, type_)
                for each, type_ in zip(row, types, strict=True)
            )
            for row in rows
        )
        columns = tuple(QueryColumn(f"col{i}", type_) for i, type_ in enumerate(types, 1))
        span = session.span(node)
        return session.constant_rows(typed, columns, span) or Values(typed, columns, span)

    # --- common table expressions --------------------------------------------------------------

    def _common_tables(
        self, clause: exp.With, around: Scope
    ) -> tuple[Mapping[str, CommonTable], tuple[RecursiveTable, ...]]:
        self.session.check(clause, "expressions", "recursive")
        binder = RecursionBinder(self.session, self.bind, self.branch_types)
        return binder.bind(clause, around.tables)


Finish = Callable[[Query, BindingSession], Query]
"""What is done to a query last."""
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def bind_query(
    tree: exp.Expr,
    catalog: SqlCatalog,
    file: SourceFile,
    parameters: Mapping[str, Value] | None = None,
    *,
    takes_rows: bool = False,
    finish: Finish = finished,
) -> Query:
    """Return a query with its names, types and functions resolved.

    Args:
        tree: its syntax tree, parsed by `parse_query`.
        catalog: the relations that it may name.
        file: the text that the tree was parsed from.
        parameters: the values of `:name`.
        takes_rows: whether many literals may become `ConstantRows`.
        finish: gives types to columns that have none.

    Raises:
        InputError: something in it is unknown or refused; with its place.
    """
    if catalog.functions:
        from corollary.frontends.sql.statements.functions import inline_functions

        tree = inline_functions(tree, catalog.functions, file)
    session = binding_session(file, catalog, parameters or {}, takes_rows=takes_rows)
    return bind_tree(tree, session, finish)


def binding_session(
    file: SourceFile,
    catalog: SqlCatalog,
    parameters: Mapping[str, Value],
    *,
    takes_rows: bool = False,
    unknown: UnknownTypes | None = None,
    steps_max: int | None = None,
) -> BindingSession:
    """Return what the parts of the binder share while a statement is bound."""
    session = BindingSession(file, catalog, parameters, takes_rows, unknown, steps_max)
    session.bind_nested = QueryBinder(session).bind_nested
    return session


def bind_tree(tree: exp.Expr, session: BindingSession, finish: Finish = finished) -> Query:
    """Return the query of a tree.

    Raises:
        InputError: something in it is unknown or refused; with its place.
    """
    file = session.file
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if not isinstance(tree, _QUERIES):
        message = "This statement is not a query."
        note = "a query begins with SELECT, WITH or VALUES"
        raise InputError.of("C1301", message, span_of(tree, file), note)
    try:
        return finish(QueryBinder(session).bind(tree, Scope()), session)
    except RecursionError:
        note = "split it with common table expressions or views"
        message = "The statement is nested too deeply."
        raise InputError.of("C1322", message, span_of(tree, file), note) from None
