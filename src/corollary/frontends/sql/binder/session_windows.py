"""Sessions: `GROUP BY k, session_window(t, '10 minutes')` becomes windows over the rows of FROM.

A row begins a session if its time is after the last one before it, of the same other keys, plus
the gap: sessions that touch are one, as in Spark. The start of a row's session is the last begin up
to it, and the session ends the gap after the last of its times:

    begin    if lag(t) OVER (PARTITION BY k ORDER BY t) + gap >= t: null, else t
    start    max(begin) OVER (PARTITION BY k ORDER BY t)
    end      max(t) OVER (PARTITION BY k, start) + gap

Rows without a time are in none.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.core.types import BOOL, Type
from corollary.data_class import dataclass
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.binder.context import ExpressionContext
from corollary.frontends.sql.binder.scopes import Scope, ScopeColumn, ScopeSource
from corollary.frontends.sql.binder.session import BindingSession
from corollary.frontends.sql.binder.time_windows import PARTS, SESSION, TimeSession
from corollary.frontends.sql.binder.values.common_types import call, integer
from corollary.frontends.sql.binder.values.intervals import combine
from corollary.frontends.sql.binder.values.operators import Site, choose, connect, negate
from corollary.frontends.sql.binder.widening import wrapped


@dataclass(frozen=True, slots=True)
class BoundSession:
    """The sessions of a block: the number of the source that has their times.

    Attributes:
        site: where the call stands, for messages.
    """

    number: int
    time: tree.Expression
    gap: tree.Expression
    site: Site


def bind_session(found: TimeSession, context: ExpressionContext) -> tuple[BoundSession, Scope]:
    """Return the sessions of a block, and its scope with their times."""
    session, scope = context.session, context.scope
    site = context.site(found.call, found.call.expressions[0], name="session_window")
    time = context.bind(found.time)
    number = session.next_source()
    columns = tuple(
        ScopeColumn(name, tree.ColumnReference(number, at, time.type), SESSION)
        for at, name in enumerate(PARTS)
    )
    scope = replace(scope, sources=(*scope.sources, ScopeSource(SESSION, columns)))
    return BoundSession(number, time, context.bind(found.gap), site), scope


def over_session(select: tree.Select, found: BoundSession, session: BindingSession) -> tree.Select:
    """Return a block whose FROM has the times of sessions as columns."""
    if select.group_by is None or select.grouping_sets is not None:
        message = "`session_window` stands in GROUP BY, without ROLLUP and its like."
        note = "write `GROUP BY k, session_window(t, '10 minutes')`"
        raise found.site.error("C1310", message, note)
    assert select.source is not None
    time, gap, site = found.time, found.gap, found.site
    moment = time.type.with_null(True)
    nothing = tree.ConstantValue(None, moment)
    keys = tuple(each for each in select.group_by if not _names(each, found.number))
    order = (tree.OrderItem(time),)
    before = tree.WindowCall("lag", (time, integer(1), nothing), keys, order, None, moment)
    is_near = call("ge", (combine("+", before, gap, site), time), BOOL, site.span)
    begin = choose([(is_near, nothing)], time, moment, site.span)
    is_there = negate(tree.FunctionCall("is_null", (time,), BOOL, site.span), site.span)
    given = list(_columns(select.source))
    places = {(each.source, each.column): at for at, (_, each) in enumerate(given)}
    own = [*keys, time, begin]
    columns = (*given, *((_named(each.type), each) for each in own))
    where = connect("and", (*tree.conjuncts(select.where), is_there), site.span)
    rows = tree.Select(columns, select.source, where, span=select.span)
    ends = slice(len(given), len(given) + len(keys))

    def start(read: list[tree.ColumnReference]) -> tree.Expression:
        *_, moment_, begun = read
        by_time = (tree.OrderItem(moment_),)
        return tree.WindowCall("max", (begun,), tuple(read[ends]), by_time, None, moment)

    def end(read: list[tree.ColumnReference]) -> tree.Expression:
        *_, moment_, _, started = read
        found = tree.WindowCall("max", (moment_,), (*read[ends], started), (), None, moment)
        return combine("+", found, gap, site)

    for window in (start, end):
        source, read = _read(rows, session)
        made = window(read)
        columns = tuple((_named(each.type), each) for each in (*read, made))
        rows = tree.Select(columns, source, span=select.span)
    source, read = _read(rows, session)
    times = read[-2:]

    def moved(reference: tree.ColumnReference, level: int) -> tree.Expression:
        """Return what a reference became; in subqueries, the block is further out."""
        if reference.depth != level:
            return reference
        if reference.source == found.number:
            return replace(times[reference.column], depth=level)
        at = places.get((reference.source, reference.column))
        if at is None:
            return reference
        return replace(read[at], type=reference.type, depth=level)

    names = ("columns", "group_by", "having")
    changed = {name: tree.map_references(getattr(select, name), moved) for name in names}
    both = tuple(times)
    # A struct of both times has them as keys, so that its fields are known after grouping.
    changed["group_by"] = tuple(
        part
        for key in changed["group_by"]
        for part in (
            both if isinstance(key, tree.FunctionCall) and key.arguments[1::2] == both else (key,)
        )
    )
    return replace(select, source=source, where=None, **changed)


def _names(expression: tree.Expression, number: int) -> bool:
    parts = tree.walk(expression)
    return any(isinstance(each, tree.ColumnReference) and each.source == number for each in parts)


def _named(type_: Type) -> tree.QueryColumn:
    return tree.QueryColumn("part", type_)


def _columns(source: tree.Source) -> Iterator[tuple[tree.QueryColumn, tree.ColumnReference]]:
    """Yield the columns that can be named of what is in FROM."""
    if not isinstance(source, tree.JoinedSource):
        for at, column in enumerate(source.columns):
            yield column, tree.ColumnReference(source.number, at, column.type)
        return
    is_full = source.kind is tree.JoinKind.FULL
    sides = [(source.left, is_full)]
    if source.kind not in (tree.JoinKind.SEMI, tree.JoinKind.ANTI):
        sides.append((source.right, is_full or source.kind is tree.JoinKind.LEFT))
    for side, is_padded in sides:
        for column, reference in _columns(side):
            type_ = column.type.with_null(column.type.nullable or is_padded)
            yield replace(column, type=type_), replace(reference, type=type_)


def _read(
    rows: tree.Select, session: BindingSession
) -> tuple[tree.Source, list[tree.ColumnReference]]:
    """Return a query as a source, and its columns."""
    number = session.next_source()
    source = wrapped(rows, number)
    read = [tree.ColumnReference(number, at, each.type) for at, each in enumerate(source.columns)]
    return source, read
