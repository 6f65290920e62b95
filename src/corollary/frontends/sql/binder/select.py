"""One block: SELECT … FROM … WHERE … GROUP BY … HAVING …, and the ORDER BY that belongs to it.

GROUP BY has keys, and the sets of keys of GROUPING SETS, ROLLUP and CUBE.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from sqlglot import exp

from corollary.core.types import BOOL, NUMBER
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.context import ExpressionContext, name_of
from corollary.frontends.sql.binder.expressions import ExpressionBinder
from corollary.frontends.sql.binder.generators import without_generators
from corollary.frontends.sql.binder.names import (
    changed_columns,
    fields_of,
    near_names,
    qualifier_of,
    starred,
)
from corollary.frontends.sql.binder.scopes import Scope, ScopeColumn
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.session_windows import (
    BoundSession,
    bind_session,
    over_session,
)
from corollary.frontends.sql.binder.sources import QueryReader, SourceBinder
from corollary.frontends.sql.binder.time_windows import without_time_windows
from corollary.frontends.sql.binder.values.common_types import column_type, integer
from corollary.frontends.sql.binder.values.operators import check_comparable
from corollary.frontends.sql.binder.windows import (
    chosen_by_windows,
    has_window,
    over_grouping_sets,
)
from corollary.frontends.sql.query_tree import (
    Expression,
    FunctionCall,
    OrderItem,
    QueryColumn,
    Select,
    Source,
    WindowCall,
)

SETS_MAX = 4096
"""The maximum number of grouping sets of one query."""

KeySet = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of a query, the sets of them, and what the keys are after grouping, by the key."""

    keys: tuple[Expression, ...]
    sets: tuple[frozenset[int], ...] | None
    after: dict[Expression, Expression]


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate of its own query, windows apart."""
    return any(_aggregates(node))


def _aggregates(node: exp.Expr, windowed: exp.Expr | None = None) -> Iterator[exp.Expr]:
    """Yield the aggregates in a node; `windowed` is the function of the window around it."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        windowed = node.this
        while isinstance(windowed, _AROUND_CALLS):
            windowed = windowed.this
    elif isinstance(node, exp.Anonymous) and name_of(node) in AGGREGATES and node is not windowed:
        yield node
        return
    for part in node.iter_expressions():
        yield from _aggregates(part, windowed)


_AROUND_CALLS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


class GroupReader:
    """Reads one GROUP BY."""

    def __init__(self, context: ExpressionContext, items: list[exp.Expr]) -> None:
        self.context = context
        self.session = context.session
        self.items = items
        self.keys: list[Expression] = []

    def read(self, node: exp.Group) -> Grouping:
        """Return the keys and sets of a GROUP BY."""
        self.session.check(node, "expressions", "rollup", "cube", "grouping_sets", "all")
        parts = list(node.expressions)
        if node.args.get("all"):
            parts = [
                key
                for item in self.items
                if not has_aggregate(item)
                for key in starred(item, self.context.scope, self.session)
            ]
        choices: list[list[KeySet]] = []
        is_plain = True
        for part in parts:
            is_plain &= not isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets)
            choices.append(self._sets(part))
        for name in ("rollup", "cube", "grouping_sets"):
            for part in node.args.get(name) or []:
                is_plain = False
                if name == "grouping_sets":  # GROUP BY a, b GROUPING SETS ((a), (b))
                    choices = [self._sets(part)]
                elif part.expressions:
                    choices.append(self._sets(part))
                else:  # GROUP BY a, b WITH ROLLUP
                    singles = [choice[0] for choice in choices]
                    choices = [_rollup(singles) if name == "rollup" else _cube(singles)]
        count = 1
        for choice in choices:
            count *= len(choice)
        if count > SETS_MAX:
            message = f"These are {count} groupings."
            raise self.session.error("C1322", message, node, "group by fewer sets")
        if is_plain:
            return Grouping(tuple(self.keys), None, {key: key for key in self.keys})
        sets = tuple(
            frozenset(key for each in chosen for key in each) for chosen in product(*choices)
        )
        keys = tuple(
            replace(key, type=key.type.with_null(True))
            if any(number not in chosen for chosen in sets)
            else key
            for number, key in enumerate(self.keys)
        )
        return Grouping(keys, sets, dict(zip(self.keys, keys, strict=True)))

    def _sets(self, node: exp.Expr) -> list[KeySet]:
        """Return the sets of keys that one term of GROUP BY stands for."""
        match node:
            case exp.Rollup():
                self.session.check(node, "expressions")
                return _rollup([self._composite(each) for each in node.expressions])
            case exp.Cube():
                self.session.check(node, "expressions")
                if len(node.expressions) > 12:
                    raise self.session.error(
                        "C1322", "This CUBE is too large.", node, "use fewer keys"
                    )
                return _cube([self._composite(each) for each in node.expressions])
            case exp.GroupingSets():
                self.session.check(node, "expressions")
                return [found for each in node.expressions for found in self._member(each)]
            case exp.Tuple() if node.expressions:
                return [self._composite(node)]
            case _:
                return [(self._key(node),)]

    def _member(self, node: exp.Expr) -> list[KeySet]:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            return self._sets(node)
        return [self._composite(node)]

    def _composite(self, node: exp.Expr) -> KeySet:
        if isinstance(node, exp.Tuple):
            return tuple(self._key(each) for each in node.expressions)
        return (self._key(node.this if isinstance(node, exp.Paren) else node),)

    def _key(self, node: exp.Expr) -> int:
        """Return the number of a key, which an ordinal or an alias may stand for."""
        position = _ordinal(node, len(self.items), self.session)
        if position is not None:
            if any(item.is_star for item in self.items[:position]):
                message = "A number cannot count the columns of `*`."
                raise self.session.error("C1314", message, node, "name the column")
            item = self.items[position - 1]
            node = item.this if isinstance(item, exp.Alias) else item
        elif isinstance(node, exp.Alias):
            node = node.this
        key = self.context.bind(node)
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def _rollup(parts: list[KeySet]) -> list[KeySet]:
    return [
        tuple(key for part in parts[:length] for key in part)
        for length in range(len(parts), -1, -1)
    ]


def _cube(parts: list[KeySet]) -> list[KeySet]:
    return [
        tuple(key for part in chosen for key in part)
        for length in range(len(parts), -1, -1)
        for chosen in combinations(parts, length)
    ]


def _ordinal(node: exp.Expr, width: int, session: BindingSession) -> int | None:
    """Return the number of a column of the SELECT that a node is; None if it is no integer."""
    sign, inner = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(inner, exp.Literal) or inner.is_string or not inner.this.isdigit():
        return None
    position = sign * int(inner.this)
    if not 1 <= position <= width:
        message = f"There is no column {position} in the SELECT."
        raise session.error("C1314", message, node, f"write a number from 1 to {width}")
    return position


# --- blocks --------------------------------------------------------------------------------------


CLAUSES = (
    *("expressions", "distinct", "from_", "joins", "where", "group", "having", "windows"),
    *("qualify", "with_", "order", "limit", "offset"),
)
"""The parts of a SELECT that are known; the last four are read by the query around it."""

PLACING = ("sort", "cluster", "distribute")
"""The parts that say where Spark puts rows, which have no place here; nor have hints an effect."""

OrderTerm = tuple[int, bool, bool]
"""A column, whether descending, whether nulls come first."""


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A block with the terms of its order; `width` columns are the user's, the others hidden.

    Attributes:
        has_chosen: whether DISTINCT ON has chosen rows by the order.
    """

    select: Select
    order: tuple[OrderTerm, ...]
    width: int
    has_chosen: bool = False


def bind_select(
    node: exp.Select,
    order: exp.Order | None,
    around: Scope,
    session: BindingSession,
    read_query: QueryReader,
) -> BoundSelect:
    """Return a block; `around` is its scope before its sources are known."""
    node, order, sessions = without_time_windows(node, order, session)
    node = without_generators(node, session)
    session.check(node, *CLAUSES, *PLACING, "hint")
    source, scope = SourceBinder(session, around, read_query).bind_from(node)
    bound = None
    if sessions is not None:
        context = ExpressionBinder(session, scope, "GROUP BY")
        bound, scope = bind_session(sessions, context)
    return _SelectBinder(node, session, scope, bound).bind(source, order)


class _SelectBinder:
    """Binds the clauses of a block after its FROM."""

    def __init__(
        self,
        node: exp.Select,
        session: BindingSession,
        scope: Scope,
        time_session: BoundSession | None,
    ) -> None:
        self.node = node
        self.session = session
        self.scope = scope
        self.time_session = time_session
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
        named = replace(output, aliases_first=True)
        having = self._condition(
            "having", "HAVING", replace(named, clause="HAVING", with_windows=False)
        )
        qualify = self._condition("qualify", "QUALIFY", replace(named, clause="QUALIFY"))
        shown = {column.name.lower() for column, _ in columns}
        for clause in filter(None, map(self.node.args.get, PLACING)):
            for term in clause.expressions:
                node = term.this if isinstance(term, exp.Ordered) else term
                if not (isinstance(node, exp.Column) and node.sql().lower() in shown):
                    named.bind(node)
        width = len(columns)
        distinct = self.node.args.get("distinct")
        is_distinct = distinct is not None and distinct.args.get("on") is None
        terms = self._order(order, columns, output, is_distinct)
        keys = self._distinct_on(columns, output)
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
        if self.time_session is not None:
            select = over_session(select, self.time_session, self.session)
        if qualify is not None:
            if not has_window((qualify, tuple(each for _, each in columns))):
                message = "QUALIFY needs a window function, here or in the SELECT."
                raise self.session.error(
                    "C1316", message, self.node.args["qualify"], "write the condition after WHERE"
                )
            select = chosen_by_windows(select, qualify, self.session)
        if keys:
            return BoundSelect(self._first_of_each(select, keys, terms), terms, width, True)
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

    # --- DISTINCT ON ---------------------------------------------------------------------------

    def _distinct_on(
        self, columns: list[tuple[QueryColumn, Expression]], output: ExpressionBinder
    ) -> tuple[int, ...]:
        """Return the columns of the terms of DISTINCT ON, which are read as those of ORDER BY."""
        node = self.node.args.get("distinct")
        if node is None:
            return ()
        self.session.check(node, "on")
        names = [column for column, _ in columns]
        terms = () if node.args.get("on") is None else node.args["on"].expressions
        positions = (
            self._position(*named, columns, output, is_distinct=False)
            for term in terms
            for named in named_terms(term, names, self.session)
        )
        return tuple(dict.fromkeys(positions))

    def _first_of_each(
        self, select: Select, columns: tuple[int, ...], terms: tuple[OrderTerm, ...]
    ) -> Select:
        """Return a query around a block that has the first of the rows which agree in columns."""
        session, node = self.session, self.node.args["distinct"]
        keys = tuple(select.columns[at][1] for at in columns)
        order = tuple(OrderItem(select.columns[at][1], *directed) for at, *directed in terms)
        first = tuple(dict.fromkeys(each.expression for each in order))[: len(keys)]
        if set(first) != set(keys):
            message = "ORDER BY has to begin with the terms of DISTINCT ON."
            raise session.error("C1314", message, node, "write them first, then what chooses a row")
        if has_window((keys, tuple(each.expression for each in order))):
            message = "A window function cannot stand in DISTINCT ON or its ORDER BY."
            note = "compute it in a subquery, and use its result"
            raise session.error("C1316", message, node, note)
        number = WindowCall("row_number", (), keys, order, None, NUMBER, select.span)
        is_first = FunctionCall("eq", (number, integer(1)), BOOL, select.span)
        return chosen_by_windows(select, is_first, session)

    # --- grouping ------------------------------------------------------------------------------

    def _grouping(self, order: exp.Order | None) -> Grouping | None:
        group = self.node.args.get("group")
        if group is None:
            having, qualify = (self.node.args.get(part) for part in ("having", "qualify"))
            parts = [*self.items, *([] if order is None else order.expressions)]
            parts += [] if qualify is None else [qualify.this]
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
            return self._starred(item.this, item, self._columns_of(item, output), output)
        if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star):
            self.session.check(item, "this", "expression")
            columns = self._columns_of_struct(item.this, item, output)
            return self._starred(item.expression, item, columns, output)
        binder = replace(output, aliases=self.aliases[:index])
        if isinstance(item, exp.Alias):
            self.session.check(item, "this", "alias")
            expression, name, place = binder.bind(item.this), item.alias, item.args["alias"]
        else:
            expression, place = binder.bind(item), item
            name = self._default_name(item)
        return [(QueryColumn(name, column_type(expression), self.session.span(place)), expression)]

    def _default_name(self, item: exp.Expr) -> str:
        """Return the name of a column without alias: that of the column, or the text itself."""
        while isinstance(item, exp.Paren):
            item = item.this
        if isinstance(item, exp.Dot) and isinstance(item.find(exp.Column), exp.Column):
            return item.name
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
        place = item if item is not None else star
        if not found:
            raise self.session.error("C1303", "`*` needs a FROM.", place, "name the columns")
        names = [each.name for each in found]
        left_out, replaced = changed_columns(star, names, self.session)
        columns = []
        for column in found:
            if column.name.lower() in left_out:
                continue
            expression = column.expression
            if column.name.lower() in replaced:
                expression = output.bind(replaced[column.name.lower()])
            elif output.keys is not None and not column.is_bound:
                if expression not in output.keys:
                    message = f"`{column.name}` is neither grouped nor inside an aggregate."
                    note = "name the columns that are grouped, instead of `*`"
                    raise self.session.error("C1313", message, place, note)
                expression = output.keys[expression]
            span = self.session.span(place)
            columns.append((QueryColumn(column.name, column_type(expression), span), expression))
        return columns

    def _columns_of_struct(
        self, struct: exp.Expr, item: exp.Expr, output: ExpressionBinder
    ) -> tuple[ScopeColumn, ...]:
        fields = fields_of(output.bind(struct), output.site(item))
        return tuple(ScopeColumn(name, value, is_bound=True) for name, value in fields)

    def _columns_of(self, item: exp.Column, output: ExpressionBinder) -> tuple[ScopeColumn, ...]:
        qualifier = qualifier_of(item) or ""
        sources = [source for source in self.scope.sources if source.is_called(qualifier)]
        if not sources:
            words = {"this": "table", "table": "db", "db": "catalog"}
            struct = exp.Column(**{to: item.args.get(word) for to, word in words.items()})
            if output.try_bind(struct) is not None:
                return self._columns_of_struct(struct, item, output)
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
        names = [column for column, _ in columns]
        terms = tuple(
            (self._position(*named, columns, output, is_distinct=is_distinct), *directions(node))
            for node in order.expressions
            for named in ordered_terms(node, names, self.session)
        )
        for position, *_ in terms:
            check_comparable(columns[position][1].type, output.site(order))
        return terms

    def _position(
        self,
        term: int | None,
        place: exp.Expr,
        columns: list[tuple[QueryColumn, Expression]],
        output: ExpressionBinder,
        *,
        is_distinct: bool,
    ) -> int:
        """Return the column of a term of ORDER BY; one that is none yet is appended to them."""
        if term is not None:
            return term
        expression = replace(output, clause="ORDER BY", aliases_first=True).bind(place)
        known = [each for _, each in columns]
        if expression not in known:
            if is_distinct:
                message = "With DISTINCT, rows are ordered by columns of the SELECT only."
                raise self.session.error("C1314", message, place, "add it to the SELECT")
            columns.append((QueryColumn(f"order {len(columns) + 1}", expression.type), expression))
            known.append(expression)
        return known.index(expression)


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
    return named_terms(node.this, columns, session)


def named_terms(
    term: exp.Expr, columns: list[QueryColumn], session: BindingSession
) -> list[tuple[int | None, exp.Expr]]:
    """Return the columns that a term names; None where it is another expression."""
    if isinstance(term, exp.Var) and term.name.upper() == "ALL":
        return [(index, term) for index in range(len(columns))]
    position = _ordinal(term, len(columns), session)
    if position is not None:
        return [(position - 1, term)]
    if isinstance(term, exp.Column) and qualifier_of(term) is None:
        named = [i for i, c in enumerate(columns) if c.name.lower() == term.name.lower()]
        if len(named) == 1:
            return [(named[0], term)]
    return [(None, term)]
