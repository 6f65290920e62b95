"""`FROM`: relations, subqueries, common table expressions, and joins."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from corollary.core.functors.spec import WHOLE
from corollary.core.types import BOOL, NUMBER, Type
from corollary.data_class import dataclass
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.binder.context import name_of
from corollary.frontends.sql.binder.expressions import ExpressionBinder
from corollary.frontends.sql.binder.functions import function_call
from corollary.frontends.sql.binder.functions.arguments import fitted
from corollary.frontends.sql.binder.generators import (
    GENERATED,
    NUMBERS,
    is_generator,
    outer_generated,
)
from corollary.frontends.sql.binder.names import near_names
from corollary.frontends.sql.binder.pivots import without_pivots
from corollary.frontends.sql.binder.scopes import CommonTable, Scope, ScopeColumn, source_scope
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.values.common_types import column_type, common_type, integer
from corollary.frontends.sql.binder.values.conversions import convert
from corollary.frontends.sql.binder.values.operators import compare, connect, mismatch

QueryReader = Callable[[exp.Expr, Scope], tree.Query]
"""Binds a query in `FROM`; the scope is that of the query around, without its sources."""


@dataclass(frozen=True, slots=True)
class SourceBinder:
    """Binds the sources of one query.

    Attributes:
        around: the scope of the query before its sources are known.
    """

    session: BindingSession
    around: Scope
    read_query: QueryReader

    def bind_from(self, node: exp.Expr) -> tuple[tree.Source | None, Scope]:
        """Return the sources of a SELECT, joined, and the scope with their columns."""
        clause, joins = node.args.get("from_"), node.args.get("joins") or []
        if clause is None:
            if joins:
                raise self.session.unsupported(joins[0])
            return None, self.around
        self.session.check(clause, "this")
        source, scope = self.bind_source(clause.this)
        return self._with_joins(source, scope, node)

    def _with_joins(
        self, source: tree.Source, scope: Scope, node: exp.Expr
    ) -> tuple[tree.Source, Scope]:
        """Return a source joined to what a node joins to it, and the scope of both."""
        for join in node.args.get("joins") or []:
            assert isinstance(join, exp.Join)
            source, scope = self._bind_join(source, scope, join)
        return source, scope

    def bind_source(self, node: exp.Expr) -> tuple[tree.Source, Scope]:
        """Return one source and its scope."""
        if node.args.get("pivots"):
            node = without_pivots(node, self.session, self._types_of)
        match node:
            case exp.Table():
                return self._bind_table(node)
            case exp.Subquery() if isinstance(node.this, exp.Table):
                return self._bind_group(node)
            case exp.Subquery() | exp.Values():
                return self._bind_subquery(node, self.around)
            case exp.Lateral():
                return self._bind_lateral(node, self.around)
            case _:
                raise self.session.unsupported(node)

    def _types_of(self, query: exp.Select) -> Iterator[Type]:
        return (each.type for each in tree.output_columns(self.read_query(query, self.around)))

    def _bind_group(self, node: exp.Subquery) -> tuple[tree.Source, Scope]:
        """Return the source of `(t JOIN u ON …)`."""
        self.session.check(node, "this", "alias", "joins")
        source, scope = self.bind_source(node.this)
        source, scope = self._with_joins(source, scope, node)
        if node.args.get("alias") is None:
            return source, scope
        columns = tuple(tree.QueryColumn(c.name, column_type(c.expression)) for c in scope.visible)
        columns = renamed_columns(columns, node, self.session)
        shown = (each.expression for each in scope.visible)
        pairs = tuple(zip(columns, shown, strict=True))
        query = tree.Select(pairs, source, span=self.session.span(node))
        number = self.session.next_source()
        found = tree.SubquerySource(number, query, columns, span=query.span)
        return found, source_scope(node.alias, number, columns, self.around)

    def _bind_lateral(self, node: exp.Lateral, before: Scope) -> tuple[tree.Source, Scope]:
        """Return the source of a query that can name the columns of the sources before it."""
        self.session.check(node, "this", "alias")
        query = node.this.copy()
        if is_generator(query):
            query, _ = outer_generated(query, self.session)
        elif isinstance(query, exp.Anonymous):
            message = f"`{name_of(query)}` cannot stand after LATERAL."
            note = "write `LATERAL explode(sequence(a, b)) AS r(x)`, or a subquery"
            raise self.session.error("C1310", message, node.this, note)
        query.set("alias", node.args.get("alias"))
        source, scope = self._bind_subquery(query, before)
        # The columns of a generator in the SELECT are columns of its output only.
        return source, replace(scope, visible=()) if node.alias == GENERATED else scope

    def _bind_subquery(self, node: exp.Expr, around: Scope) -> tuple[tree.Source, Scope]:
        if isinstance(node, exp.Subquery):
            self.session.check(node, "this", "alias", "with_", "order", "limit", "offset", "joins")
        query = self.read_query(node, around)
        columns = renamed_columns(tree.output_columns(query), node, self.session)
        number = self.session.next_source()
        source = tree.SubquerySource(number, query, columns, span=self.session.span(node))
        scope = source_scope(node.alias, number, columns, self.around)
        return self._with_joins(source, scope, node)

    def _bind_table(self, node: exp.Table) -> tuple[tree.Source, Scope]:
        session = self.session
        session.check(node, "this", "db", "catalog", "alias", "joins")
        if isinstance(node.this, exp.Anonymous) and name_of(node.this) in ("range", NUMBERS):
            return self._bind_range(node)
        if is_generator(node.this):
            query, _ = outer_generated(node.this, session)
            query.set("alias", node.args.get("alias"))
            return self._bind_subquery(query, self.around)
        parts = [node.args.get(part) for part in ("catalog", "db", "this")]
        identifiers = [part for part in parts if part is not None]
        if not all(isinstance(part, exp.Identifier) for part in identifiers):
            message = "A function cannot stand in FROM."
            raise session.error(
                "C1310", message, node, "name a relation, or write a subquery or VALUES"
            )
        name = ".".join(part.name for part in identifiers)
        table = self.around.tables.get(name.lower()) if len(identifiers) == 1 else None
        number = session.next_source()
        source: tree.Source
        if table is not None:
            source = self._common_table(table, number, node)
        else:
            source = self._relation(name, number, node)
        scope = source_scope(node.alias or name, number, source.columns, self.around)
        if table is None and any(each.is_hidden for each in session.catalog.find(name)):
            scope = replace(scope, visible=())
        return self._with_joins(source, scope, node)

    def _bind_range(self, node: exp.Table) -> tuple[tree.Source, Scope]:
        """Return the source of `range([start,] end [, step [, parts]])`."""
        session, called = self.session, node.this
        session.check(called, "this", "expressions")
        if name_of(called) == NUMBERS:
            binder = ExpressionBinder(session, self.around, "FROM")
            site = binder.site(called, *called.expressions, name="size")
            count = function_call("size", [binder.bind(called.expressions[0])], site)
            return self._range_source(node, (integer(0), count, integer(1)))
        binder = ExpressionBinder(session, Scope(), "FROM")
        site = binder.site(called, *called.expressions, name="range")
        given = [fitted(binder.bind(each), WHOLE, site) for each in called.expressions]
        if not 1 <= len(given) <= 4:
            message = "`range` takes 1 to 4 numbers."
            raise session.error("C1306", message, called, "write `range(start, end, step)`")
        start, end, step = (
            [integer(0), given[0], integer(1)] if len(given) == 1 else [*given[:3], integer(1)][:3]
        )
        if any(not isinstance(tree.constant_of(each), int) for each in given) or step == integer(0):
            message = "`range` takes literal numbers, and a step other than 0."
            raise session.error("C1306", message, called, "write `range(0, 10, 2)`")
        return self._range_source(node, (start, end, step))

    def _range_source(
        self, node: exp.Table, bounds: tuple[tree.Expression, tree.Expression, tree.Expression]
    ) -> tuple[tree.Source, Scope]:
        session, number = self.session, self.session.next_source()
        columns = renamed_columns((tree.QueryColumn("id", NUMBER),), node, session)
        source = tree.RangeSource(number, bounds, columns, session.span(node))
        scope = source_scope(node.alias or "range", number, columns, self.around)
        return self._with_joins(source, scope, node)

    def _common_table(
        self, table: CommonTable, number: int, node: exp.Table
    ) -> tree.RecursiveSource | tree.SubquerySource:
        span = self.session.span(node)
        columns = renamed_columns(table.columns, node, self.session)
        if table.query is None:
            return tree.RecursiveSource(number, table.name, columns, span)
        return tree.SubquerySource(number, table.query, columns, table.name, span)

    def _relation(self, name: str, number: int, node: exp.Table) -> tree.TableSource:
        session = self.session
        found = session.catalog.find(name)
        if not found:
            known = [*session.catalog.names(), *self.around.tables]
            note = near_names(name, known, "the relations are")
            raise session.error("C1302", f"There is no relation `{name}`.", node, note)
        if len(found) > 1:
            names = " and ".join(f"`{each.relation}`" for each in found)
            note = "rename one of them: SQL does not tell names apart by case"
            raise session.error("C1304", f"`{name}` can mean {names}.", node, note)
        table = found[0]
        columns = renamed_columns(table.columns, node, session)
        return tree.TableSource(
            number, table.relation, columns, table.is_bag, table.keys, session.span(node)
        )

    # --- joins ---------------------------------------------------------------------------------

    def _bind_join(
        self, left: tree.Source, scope: Scope, node: exp.Join
    ) -> tuple[tree.Source, Scope]:
        session = self.session
        session.check(node, "this", "on", "using", "side", "kind", "method")
        kind, is_right = self._kind(node)
        if isinstance(node.this, exp.Lateral):
            if is_right or kind not in (tree.JoinKind.INNER, tree.JoinKind.LEFT):
                note = "LATERAL is joined by a comma, INNER, CROSS or LEFT JOIN"
                raise session.error("C1310", "This join cannot be LATERAL.", node.this, note)
            right, other = self._bind_lateral(node.this, scope)
        else:
            right, other = self.bind_source(node.this)
        both = scope.joined(other)
        condition: tree.Expression | None = None
        merged: list[ScopeColumn] = []
        names = self._shared_names(node, scope, other)
        if node.args.get("on") is not None:
            binder = ExpressionBinder(session, both, "ON")
            condition = binder.bind_condition(node.args["on"], "`ON`")
        elif names is not None:
            condition, merged = self._using(names, scope, other, node)
        elif kind is not tree.JoinKind.INNER:
            condition = tree.ConstantValue(True, BOOL)
        span = session.span(node)
        if is_right:
            source = tree.JoinedSource(tree.JoinKind.LEFT, right, left, condition, span)
        else:
            source = tree.JoinedSource(kind, left, right, condition, span)
        if kind in (tree.JoinKind.SEMI, tree.JoinKind.ANTI):
            return source, scope if names is None else _led_by(merged, scope)
        if is_right or kind is tree.JoinKind.FULL:
            scope = scope.padded()
        if kind in (tree.JoinKind.LEFT, tree.JoinKind.FULL) and not is_right:
            other = other.padded()
        joined = scope.joined(other)
        return source, joined if names is None else _led_by(merged, joined)

    def _kind(self, node: exp.Join) -> tuple[tree.JoinKind, bool]:
        """Return the kind of a join, and whether it is RIGHT."""
        side = str(node.args.get("side") or "").upper()
        kind = str(node.args.get("kind") or "").upper()
        method = str(node.args.get("method") or "").upper()
        kinds = {
            ("", ""): tree.JoinKind.INNER,
            ("", "INNER"): tree.JoinKind.INNER,
            ("", "CROSS"): tree.JoinKind.INNER,
            ("LEFT", ""): tree.JoinKind.LEFT,
            ("LEFT", "OUTER"): tree.JoinKind.LEFT,
            ("RIGHT", ""): tree.JoinKind.LEFT,
            ("RIGHT", "OUTER"): tree.JoinKind.LEFT,
            ("FULL", ""): tree.JoinKind.FULL,
            ("FULL", "OUTER"): tree.JoinKind.FULL,
            ("", "SEMI"): tree.JoinKind.SEMI,
            ("LEFT", "SEMI"): tree.JoinKind.SEMI,
            ("", "ANTI"): tree.JoinKind.ANTI,
            ("LEFT", "ANTI"): tree.JoinKind.ANTI,
        }
        found = kinds.get((side, kind))
        if found is None or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            note = "joins are INNER, LEFT, RIGHT, FULL, CROSS, SEMI and ANTI"
            raise self.session.error("C1310", f"`{words} JOIN` is not supported.", node, note)
        return found, side == "RIGHT"

    def _shared_names(
        self, node: exp.Join, left: Scope, right: Scope
    ) -> list[tuple[str, exp.Expr]] | None:
        """Return the columns of USING or NATURAL, with their places; None without them."""
        using = node.args.get("using")
        if using:
            return [(each.name, each) for each in using]
        if str(node.args.get("method") or "").upper() == "NATURAL":
            there = {column.name.lower() for column in right.visible}
            found = [c.name for c in left.visible if c.name.lower() in there]
            return [(name, node) for name in dict.fromkeys(found)] or None
        return None

    def _using(
        self,
        names: list[tuple[str, exp.Expr]],
        left: Scope,
        right: Scope,
        node: exp.Join,
    ) -> tuple[tree.Expression, list[ScopeColumn]]:
        """Return the condition of USING, and the merged columns."""
        kind, is_right = self._kind(node)
        tests, merged = [], []
        for name, place in names:
            one = self._one(name, left, place, "left")
            other = self._one(name, right, place, "right")
            site = ExpressionBinder(self.session, left, "USING").site(place)
            tests.append(compare("eq", one.expression, other.expression, site))
            if kind is tree.JoinKind.FULL:
                values: list[tree.Expression] = [one.expression, other.expression]
                type_ = common_type(values)
                if type_ is None:
                    raise mismatch(site, values, "`USING`")
                column = self._coalesced(one, other, type_)
            else:
                column = replace(other if is_right else one, source="")
            merged.append(column)
        return connect("and", tests, self.session.span(node)), merged

    @staticmethod
    def _coalesced(one: ScopeColumn, other: ScopeColumn, type_: Type) -> ScopeColumn:
        """Return the merged column of a FULL join: one of both sides has a row."""
        parts = tuple(
            convert(replace(each.expression, type=each.expression.type.with_null(True)), type_)
            for each in (one, other)
        )
        return ScopeColumn(one.name, tree.FunctionCall("coalesce", parts, type_))

    def _one(self, name: str, scope: Scope, place: exp.Expr, side: str) -> ScopeColumn:
        found = scope.find(name, None)
        if len(found) == 1:
            return found[0]
        if found:
            note = "write the condition with ON"
            message = f"`{name}` can mean several columns on the {side} side."
            raise self.session.error("C1304", message, place, note)
        note = near_names(name, [c.name for c in scope.visible], "its columns are")
        message = f"The {side} side has no column `{name}`."
        raise self.session.error("C1303", message, place, note)


def _led_by(merged: list[ScopeColumn], scope: Scope) -> Scope:
    """Return a scope whose first columns are those of USING."""
    names = {column.name.lower() for column in merged}
    rest = tuple(column for column in scope.visible if column.name.lower() not in names)
    return replace(scope, visible=(*merged, *rest))


def renamed_columns(
    columns: tuple[tree.QueryColumn, ...], node: exp.Expr, session: BindingSession
) -> tuple[tree.QueryColumn, ...]:
    """Return columns under the names that the alias of a node gives them, if it has one."""
    alias = node.args.get("alias")
    if alias is None:
        return columns
    session.check(alias, "this", "columns")
    names = alias.args.get("columns") or []
    if not names:
        return columns
    if len(names) != len(columns):
        message = f"The number of names, {len(names)}, is not that of the columns, {len(columns)}."
        raise session.error("C1315", message, alias, "give one name for each column")
    return tuple(
        replace(column, name=name.name, span=session.span(name))
        for column, name in zip(columns, names, strict=True)
    )
