"""`WITH`: common table expressions, and those that are recursive, alone or mutually.

The tables of one `WITH RECURSIVE` may refer to each other. Those that do, in a circle, are unions
of branches: bases, which refer to no table of the circle, and steps. The types come from the bases;
where a table has none, from the steps over tables whose types are known. A table of a circle that
is no union keeps its copies: it is not recursive itself, but a query over those that are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from corollary.core.graph import strongly_connected_components
from corollary.core.types import DECIMAL_MAX_DIGITS, Type
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.scopes import CommonTable, Scope
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.sources import renamed_columns
from corollary.frontends.sql.binder.values.common_types import wider
from corollary.frontends.sql.binder.widening import with_types, without_untyped
from corollary.frontends.sql.query_tree import (
    Query,
    QueryColumn,
    RecursiveTable,
    output_columns,
)

Tables = dict[str, CommonTable]


@dataclass(slots=True)
class _Circle:
    """A recursive table while it is bound."""

    node: exp.CTE
    name: str
    bases: list[exp.Expr]
    steps: list[exp.Expr]
    is_all: bool
    columns: tuple[QueryColumn, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecursionBinder:
    """Binds one `WITH`."""

    session: BindingSession
    bind_query: Callable[[exp.Expr, Scope], Query]
    branch_types: Callable[[list[Query], exp.Expr], list[Type]]

    def bind(
        self, clause: exp.With, known: Mapping[str, CommonTable]
    ) -> tuple[Mapping[str, CommonTable], tuple[RecursiveTable, ...]]:
        """Return the tables that can be named after a `WITH`, and those that are recursive."""
        nodes = self._by_name(clause)
        is_recursive = bool(clause.args.get("recursive"))
        tables: Tables = dict(known)
        found: list[RecursiveTable] = []
        if not is_recursive:
            for name, node in nodes.items():
                tables[name] = self._plain(node, tables)
            return tables, ()
        references = {name: _references(node.this, nodes) for name, node in nodes.items()}
        graph = {name: sorted(names) for name, names in references.items()}
        for component in strongly_connected_components(graph):
            members = [name for name in nodes if name in component]
            if len(members) == 1 and members[0] not in references[members[0]]:
                tables[members[0]] = self._plain(nodes[members[0]], tables)
            else:
                found += self._recursive({name: nodes[name] for name in members}, tables)
        return tables, tuple(found)

    def _by_name(self, clause: exp.With) -> dict[str, exp.CTE]:
        nodes: dict[str, exp.CTE] = {}
        for node in clause.expressions:
            self.session.check(node, "this", "alias")
            name = node.alias.lower()
            if name in nodes:
                message = f"The common table expression `{node.alias}` is defined twice."
                raise self.session.error("C1317", message, node, "give them different names")
            nodes[name] = node
        return nodes

    def _plain(self, node: exp.CTE, tables: Tables, name: str | None = None) -> CommonTable:
        query = self.bind_query(node.this, Scope(tables=dict(tables)))
        columns = renamed_columns(output_columns(query), node, self.session)
        return CommonTable(name or self.session.unique_table(node.alias), columns, query)

    # --- recursion -----------------------------------------------------------------------------

    def _recursive(self, nodes: dict[str, exp.CTE], tables: Tables) -> list[RecursiveTable]:
        plain = {name: node for name, node in nodes.items() if not self._is_union(node)}
        circles = {
            name: self._circle(node, nodes) for name, node in nodes.items() if name not in plain
        }
        ordered = self._find_types(circles, plain, tables)
        while True:  # a step may let null into a column; then all are bound again
            for name, circle in circles.items():
                assert circle.columns is not None
                tables[name] = CommonTable(circle.name, circle.columns, None)
            for name in ordered:
                tables[name] = self._plain(plain[name], tables, tables[name].name)
            bound = {name: self._bind_circle(circle, tables) for name, circle in circles.items()}
            changed = False
            for name, table in bound.items():
                if table.columns != circles[name].columns:
                    circles[name].columns, changed = table.columns, True
            if not changed:
                return list(bound.values())

    def _is_union(self, node: exp.CTE) -> bool:
        return isinstance(self._body_of(node), exp.Union)

    def _body_of(self, node: exp.CTE) -> exp.Expr:
        """Return the query of a table without parentheses around it."""
        body: exp.Expr = node.this
        while isinstance(body, exp.Subquery) and not _has_tail(body) and not body.args.get("with_"):
            self.session.check(body, "this")
            body = body.this
        return body

    def _circle(self, node: exp.CTE, nodes: dict[str, exp.CTE]) -> _Circle:
        session, body = self.session, self._body_of(node)
        branches: list[exp.Expr] = []
        operators: set[bool] = set()
        self._branches(body, branches, operators)
        if len(operators) > 1:
            message = f"`{node.alias}` mixes UNION and UNION ALL in its recursion."
            raise session.error("C1318", message, body, "write one of them everywhere")
        if _has_tail(body) or body.args.get("with_") is not None:
            message = f"`{node.alias}` is recursive: it has no ORDER BY, LIMIT or WITH itself."
            raise session.error("C1318", message, body, "order and cut where it is read")
        steps = [each for each in branches if _references(each, nodes)]
        bases = [each for each in branches if each not in steps]
        name = session.unique_table(node.alias)
        return _Circle(node, name, bases, steps, operators == {False})

    def _branches(self, node: exp.Expr, branches: list[exp.Expr], operators: set[bool]) -> None:
        """Collect the branches of a union, and whether its operators are distinct."""
        if isinstance(node, exp.Union) and not (branches and _has_tail(node)):
            self.session.check(
                node, "this", "expression", "distinct", "with_", "order", "limit", "offset"
            )
            operators.add(bool(node.args.get("distinct")))
            self._branches(node.this, branches, operators)
            self._branches(node.args["expression"], branches, operators)
        else:
            branches.append(node)

    def _find_types(
        self, circles: dict[str, _Circle], plain: dict[str, exp.CTE], tables: Tables
    ) -> list[str]:
        """Give each table its columns: from its bases, or from a query over known tables.

        Returns:
            The tables that are no unions, after those of them that they read.
        """
        for name, circle in circles.items():
            if circle.bases:
                queries = [self.bind_query(b, Scope(tables=dict(tables))) for b in circle.bases]
                circle.columns = self._columns_of(circle, queries)
                tables[name] = CommonTable(circle.name, circle.columns, None)
        ordered: list[str] = []
        while True:
            unknown = {name: c.node for name, c in circles.items() if c.columns is None}
            unknown |= {name: node for name, node in plain.items() if name not in ordered}
            if not unknown:
                return ordered
            ready = [
                (name, query)
                for name, node in unknown.items()
                for query in ([node.this] if name in plain else circles[name].steps)
                if not _references(query, unknown)
            ]
            if not ready:
                name, node = next(iter(unknown.items()))
                message = f"`{node.alias}` is defined by nothing but itself."
                note = "add a branch that does not refer to it: `SELECT … UNION SELECT …`"
                raise self.session.error("C1318", message, node, note)
            name, step = ready[0]
            if name in plain:
                tables[name] = self._plain(plain[name], tables)
                ordered.append(name)
                continue
            query = self.bind_query(step, Scope(tables=dict(tables)))
            columns = self._columns_of(circles[name], [query])
            circles[name].columns = columns
            tables[name] = CommonTable(circles[name].name, columns, None)

    def _columns_of(self, circle: _Circle, queries: list[Query]) -> tuple[QueryColumn, ...]:
        types = self.branch_types(queries, circle.node)
        columns = tuple(
            replace(column, type=_grown(type_))
            for column, type_ in zip(output_columns(queries[0]), types, strict=True)
        )
        return renamed_columns(without_untyped(columns), circle.node, self.session)

    def _bind_circle(self, circle: _Circle, tables: Tables) -> RecursiveTable:
        assert circle.columns is not None
        scope = Scope(tables=dict(tables))
        bases = [self._branch(circle, base, scope) for base in circle.bases]
        steps = [self._branch(circle, step, scope) for step in circle.steps]
        columns = list(circle.columns)
        for query in (*bases, *steps):
            for index, column in enumerate(output_columns(query)):
                nullable = columns[index].type.nullable or column.type.nullable
                type_ = columns[index].type.with_null(nullable)
                columns[index] = replace(columns[index], type=type_)
        span = self.session.span(circle.node)
        return RecursiveTable(
            circle.name, tuple(columns), tuple(bases), tuple(steps), circle.is_all, span
        )

    def _branch(self, circle: _Circle, node: exp.Expr, scope: Scope) -> Query:
        """Return a branch whose columns have the types of the table."""
        assert circle.columns is not None
        query = self.bind_query(node, scope)
        columns = output_columns(query)
        if len(columns) != len(circle.columns):
            message = f"This branch has {len(columns)} columns, not {len(circle.columns)}."
            raise self.session.error(
                "C1315", message, node, "select as many columns in each branch"
            )
        for column, own in zip(columns, circle.columns, strict=True):
            both = wider(column.type, own.type)
            if both is None or both.domain != own.type.domain:
                there, here = type_name(own.type), type_name(column.type)
                message = f"`{own.name}` is {there}, but this branch gives {here}."
                note = f"write `CAST(… AS {there})`, or cast it in the first branch"
                raise self.session.error("C1318", message, node, note)
        return with_types(query, [own.type for own in circle.columns], self.session)


def _grown(type_: Type) -> Type:
    """Return the type of a recursive column: a decimal has all digits, as it may grow."""
    if type_.is_decimal:
        return replace(type_, precision=DECIMAL_MAX_DIGITS)
    return type_


def _has_tail(node: exp.Expr) -> bool:
    return any(node.args.get(part) is not None for part in ("order", "limit", "offset"))


def _references(node: exp.Expr, names: Mapping[str, exp.CTE]) -> set[str]:
    """Return which tables of a `WITH` a query refers to."""
    found = set()
    for table in node.find_all(exp.Table):
        name = table.name.lower()
        if name in names and not table.args.get("db") and not _is_shadowed(table, name, node):
            found.add(name)
    return found


def _is_shadowed(table: exp.Table, name: str, top: exp.Expr) -> bool:
    """Whether a query inside defines a table of the same name, which is meant then."""
    around: exp.Expr | None = table.parent
    while around is not None and around is not top.parent:
        clause = around.args.get("with_")
        if clause is not None and any(each.alias.lower() == name for each in clause.expressions):
            return True
        around = around.parent
    return False
