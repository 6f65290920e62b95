"""WITH RECURSIVE: a union is the least set; with ALL, a way tells the derivations of a row apart.

UNION          r(X) := base. r(X) := r(Y), step.
UNION ALL      the same where no row has two derivations; else, if it is linear,
               r.ways(X, "1", n) := base.
               r.ways(X, cat(way, "/2:", W), n * k) := r.ways(Y, way, n), step.

W are the values that tell the instances of a step apart.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from corollary.core.graph import strongly_connected_components
from corollary.core.logic import Atom, Constant, Functor, Term, Variable
from corollary.core.types import NUMBER, SYMBOL
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.bodies import ONE, RuleBody
from corollary.frontends.sql.lowering.context import (
    LoweredQuery,
    OpenBranch,
    RecursiveRelation,
    ViewLowering,
    note_row,
    refuse,
)
from corollary.frontends.sql.lowering.joins import is_inlinable
from corollary.frontends.sql.lowering.set_operations import open_branch


def references(node: object, names: Collection[str]) -> list[tree.RecursiveSource]:
    """Return the references to recursive tables below a node."""
    return [
        part
        for part in tree.walk(node)
        if isinstance(part, tree.RecursiveSource) and part.cte in names
    ]


def check_uses(query: tree.Query, names: Collection[str]) -> None:
    """Refuse a use of a recursive table in which more rows could make other rows wrong."""
    match query:
        case tree.SetOperation(operator=operator, left=left, right=right):
            if operator is tree.SetOperator.EXCEPT:
                _refuse(query, names, "inside `EXCEPT`")
            check_uses(left, names)
            check_uses(right, names)
        case tree.Ordered(query=inner, limit=limit, offset=offset):
            if limit is not None or offset:
                _refuse(inner, names, "below `LIMIT`")
            check_uses(inner, names)
        case tree.Select():
            is_grouped = query.group_by is not None or tree.calls_in(
                (query.columns, query.having), tree.AggregateCall
            )
            if is_grouped:
                _refuse(query, names, "below an aggregate")
            if tree.calls_in(query.columns, tree.WindowCall):
                _refuse(query, names, "below a window function")
            for _, expression in query.columns:
                _refuse(expression, names, "in a subquery of the select list")
            if query.source is not None:
                _check_source(query.source, names)
            _check_condition(query.where, names)
        case _:
            _refuse(query, names, "inside another recursion")


def _check_source(source: tree.Source, names: Collection[str]) -> None:
    match source:
        case tree.SubquerySource(query=query):
            check_uses(query, names)
        case tree.JoinedSource(kind=kind, left=left, right=right, condition=condition):
            if kind is tree.JoinKind.FULL:
                _refuse(left, names, "on a side of `FULL JOIN`")
            if kind in (tree.JoinKind.FULL, tree.JoinKind.LEFT, tree.JoinKind.ANTI):
                _refuse(right, names, f"on the right side of `{kind.upper()} JOIN`")
                _refuse(condition, names, "in the condition of an outer join")
            _check_source(left, names)
            _check_source(right, names)
            _check_condition(condition, names)
        case _:
            pass


def _check_condition(condition: tree.Expression | None, names: Collection[str]) -> None:
    for part in tree.conjuncts(condition):
        match part:
            case tree.Exists(query=query):
                check_uses(query, names)
            case tree.Quantified(query=query, is_all=False, left=left):
                _refuse(left, names, "in a value that is compared")
                check_uses(query, names)
            case _:
                _refuse(part, names, "in a condition that may be negated")


def _refuse(node: object, names: Collection[str], place: str) -> None:
    for found in references(node, names):
        raise refuse(
            "C1351",
            f"The recursive table `{found.cte.rsplit('.', 1)[-1]}` cannot be used {place}.",
            found.span,
            "refer to it in the `FROM` of a branch, or compute this after the recursion",
        )


# --- rows of base and step -----------------------------------------------------------------------


def rows_differ(table: tree.RecursiveTable) -> frozenset[int] | None:
    """Return a key of a table whose base and step never give one row; None if they may.

    A column is a constant in the base and grows in each step; or the same columns are the key of a
    table whose rows cannot be in both: `up IS NULL` in the base, `up = r.id` in the step.
    """
    (base,), (step,) = table.bases, table.steps
    if not isinstance(base, tree.Select) or not isinstance(step, tree.Select):
        return None
    for (_, first), (_, then) in zip(base.columns, step.columns, strict=True):
        start = tree.constant_of(first)
        if isinstance(start, int) and _grows(then, step, table.name):
            return frozenset(range(len(table.columns)))
    for source in (part for part in tree.walk(base.source) if isinstance(part, tree.TableSource)):
        for other in (
            part for part in tree.walk(step.source) if isinstance(part, tree.TableSource)
        ):
            if source.relation != other.relation or source.is_bag:
                continue
            if not _contradict(base, source, step, other):
                continue
            for key in source.keys:
                places = [_place(base, step, source, other, column) for column in sorted(key)]
                found = [place for place in places if place is not None]
                if key and len(found) == len(places):
                    return frozenset(found)
    return None


def _grows(expression: tree.Expression, step: tree.Select, name: str) -> bool:
    """Whether a column is a column of the recursive table plus a positive number."""
    match expression:
        case tree.FunctionCall(functor="+", arguments=(one, other)):
            pairs = ((one, other), (other, one))
            return any(
                isinstance(number := tree.constant_of(constant), int)
                and number > 0
                and isinstance(column, tree.ColumnReference)
                and column.source in {each.number for each in references(step, {name})}
                for column, constant in pairs
            )
        case tree.FunctionCall(functor="to_integer", arguments=(inner, _)):
            return _grows(inner, step, name)
        case _:
            return False


def _place(
    base: tree.Select,
    step: tree.Select,
    source: tree.TableSource,
    other: tree.TableSource,
    column: int,
) -> int | None:
    """Return the column of the result that is a column of a table in both branches."""
    for number, ((_, first), (_, then)) in enumerate(zip(base.columns, step.columns, strict=True)):
        if _is_column(first, source, column) and _is_column(then, other, column):
            return number
    return None


def _is_column(expression: tree.Expression, source: tree.TableSource, column: int) -> bool:
    return (
        isinstance(expression, tree.ColumnReference)
        and expression.source == source.number
        and expression.column == column
    )


def _contradict(
    base: tree.Select, source: tree.TableSource, step: tree.Select, other: tree.TableSource
) -> bool:
    """Whether a row of a table cannot fulfil the conditions of both branches."""
    nulls = {
        part.arguments[0].column
        for part in _conditions(base)
        if isinstance(part, tree.FunctionCall)
        and part.functor == "is_null"
        and isinstance(part.arguments[0], tree.ColumnReference)
        and part.arguments[0].source == source.number
    }
    return any(
        isinstance(part, tree.FunctionCall)
        and part.functor == "eq"
        and any(_is_column(side, other, column) for side in part.arguments for column in nulls)
        for part in _conditions(step)
    )


def _conditions(select: tree.Select) -> list[tree.Expression]:
    """Return the conjuncts of `WHERE` and of inner joins."""
    found = list(tree.conjuncts(select.where))
    sources: list[tree.Source | None] = [select.source]
    while sources:
        source = sources.pop()
        if isinstance(source, tree.JoinedSource) and source.kind is tree.JoinKind.INNER:
            found += tree.conjuncts(source.condition)
            sources += [source.left, source.right]
    return found


# --- relations of recursive tables ---------------------------------------------------------------


def add_recursive(lowering: ViewLowering, source: tree.RecursiveSource, body: RuleBody) -> None:
    """Add a literal of a recursive table to a body."""
    found = lowering.recursive[source.cte]
    draft = lowering.draft
    variables = [
        draft.variable(column.name, type_)
        for column, type_ in zip(source.columns, found.types, strict=True)
    ]
    hidden: list[Variable] = []
    if found.has_way:
        way = draft.variable("way", SYMBOL)
        hidden.append(way)
        lowering.ways[source.number] = way
    if found.has_count:
        hidden.append(draft.variable("n", NUMBER))
        body.counts.append(hidden[-1])
    body.items.append(Atom(found.relation, (*variables, *hidden)))
    note_row(body, variables, None, found.keys, set())
    known = body.known
    known.not_null |= {each.name for each in hidden}
    if found.has_way:
        body.witnesses.append(hidden[0])
        if found.has_count:
            known.add({each.name for each in (*variables, hidden[0])}, {hidden[-1].name})
    lowering.columns[source.number] = list(variables)
    body.sources.append(source.number)


def define_recursive(
    lowering: ViewLowering, query: tree.WithRecursive, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make the rules of recursive tables, and of the query that reads them."""
    inner = tree.without_order(query.query)
    # Nobody counts derivations if the query that reads them only asks which rows there are.
    is_set = isinstance(inner, tree.Select) and (
        (body.is_set or inner.is_distinct) and is_inlinable(replace(inner, is_distinct=False))
    )
    # `WITH RECURSIVE r … SELECT * FROM r`: the view is the recursive relation itself.
    is_view = relation == lowering.draft.view and _is_renaming(query, inner)
    for circle in _circles(query.tables):
        names = {table.name for table in circle}
        for table in circle:
            for step in table.steps:
                check_uses(step, names)
        tables = [_relation_of(lowering, table) for table in circle]
        if is_view:
            tables[0].relation = relation
            tables[0].names = [each.name for each in query.columns]
        readers = [
            branch
            for table in query.tables
            if table.name not in names
            for branch in (*table.bases, *table.steps)
            if references(branch, names)
        ]
        is_read_as_set = is_set and all(is_inlinable(tree.without_order(each)) for each in readers)
        _open_tables(lowering, tables, names, is_set=is_read_as_set)
        _emit(lowering, tables, names)
        if is_view and not tables[0].has_way:
            types = tuple(tables[0].types)
            return LoweredQuery(relation, (), tuple(tables[0].names), types, False, tables[0].keys)
    return lowering.define(inner, relation, body)


def _circles(tables: Sequence[tree.RecursiveTable]) -> list[list[tree.RecursiveTable]]:
    """Return the tables that depend on each other together, after those that they read."""
    by_name = {table.name: table for table in tables}
    reads = {
        table.name: sorted({each.cte for each in references(table, by_name)}) for table in tables
    }
    return [
        [table for table in tables if table.name in component]
        for component in strongly_connected_components(reads)
    ]


def _relation_of(lowering: ViewLowering, table: tree.RecursiveTable) -> RecursiveRelation:
    """Return the relation of a recursive table, if it is a set."""
    types = [each.type.with_null(nullable=False) for each in table.columns]
    name = lowering.draft.relation(_shown(table), is_numbered=False)
    columns = [each.name for each in table.columns]
    keys = (frozenset(range(len(types))),)
    return RecursiveRelation(table, name, columns, types, keys)


def _is_renaming(query: tree.WithRecursive, inner: tree.Query) -> bool:
    """Whether the query around only lists the columns of its recursive table."""
    if len(query.tables) != 1 or not isinstance(inner, tree.Select) or inner.where is not None:
        return False
    if not isinstance(inner.source, tree.RecursiveSource):
        return False
    if not is_inlinable(replace(inner, is_distinct=False)):
        return False
    shown = [
        each.column if isinstance(each, tree.ColumnReference) and not each.depth else None
        for _, each in inner.columns
    ]
    return shown == list(range(len(query.tables[0].columns)))


# --- how derivations are told apart --------------------------------------------------------------


def _open_tables(
    lowering: ViewLowering, made: list[RecursiveRelation], names: set[str], *, is_set: bool
) -> None:
    """Open the bodies of recursive tables, and decide how their derivations are told apart."""
    tables = [each.table for each in made]
    if is_set or not any(table.is_all for table in tables):
        _open_branches(lowering, made, names, is_set=True)
        return
    if len(made) == 1 and _has_single_derivations(lowering, made[0], names):
        return
    for table in tables:
        for step in table.steps:
            found = references(step, names)
            is_linear = len(tables) == 1 and len(found) == 1
            if not (
                is_linear
                and is_inlinable(tree.without_order(step))
                and _is_read_once(lowering, step, names)
            ):
                raise refuse(
                    "C1352",
                    f"How often `UNION ALL` derives a row of `{_shown(table)}` cannot be counted: "
                    "its recursion is not linear.",
                    found[1].span if len(found) > 1 else step.span,
                    "use `UNION`, or refer to the table once in each branch, in its `FROM`",
                )
    (relation,) = made
    inside = f"{lowering.draft.view}.{_shown(relation.table)}"
    relation.relation = lowering.draft.relation("ways", is_numbered=False, of=inside)
    relation.has_way, relation.keys = True, ()
    relation.names = [each.name for each in relation.table.columns]
    _open_branches(lowering, made, names, is_set=False)


def _is_read_once(lowering: ViewLowering, step: tree.Query, names: set[str]) -> bool:
    """Whether the recursive table is in the body of a step, not in a relation that others share."""
    return not any(
        part.cte is not None and lowering.readers[part.cte] > 1 and references(part.query, names)
        for part in tree.walk(step)
        if isinstance(part, tree.SubquerySource)
    )


def _shown(table: tree.RecursiveTable) -> str:
    return table.name.rsplit(".", 1)[-1] or "r"


def _has_single_derivations(
    lowering: ViewLowering, relation: RecursiveRelation, names: set[str]
) -> bool:
    """Whether no row has two derivations; the branches are open then."""
    table = relation.table
    if len(table.bases) != 1 or len(table.steps) != 1:
        return False
    if len(references(table.steps[0], {table.name})) != 1:
        return False
    key = rows_differ(table)
    if key is None:
        return False
    relation.keys = (key,)
    # Whether branches have keys is known when they are open; what that has made goes if not.
    mark = lowering.mark()
    _open_branches(lowering, [relation], names, is_set=False)
    for branch in relation.branches:
        if branch.body.counts or not branch.keys or not is_inlinable(branch.query):
            lowering.rollback(mark)
            relation.keys = (frozenset(range(len(relation.types))),)
            relation.types = [each.type.with_null(nullable=False) for each in table.columns]
            return False
    return True


def _open_branches(
    lowering: ViewLowering,
    relations: Sequence[RecursiveRelation],
    names: set[str],
    *,
    is_set: bool,
) -> None:
    """Open the bodies of all branches; repeat it with columns that turn out to be nullable."""
    for each in relations:
        lowering.recursive[each.table.name] = each
    # That a column may be null can come round through the recursion. It ends: columns only become
    # nullable, and each of them once.
    while True:
        mark = lowering.mark()
        has_changed = False
        for relation in relations:
            table = relation.table
            relation.branches = [
                open_branch(
                    lowering,
                    tree.without_order(branch),
                    RuleBody(lowering.draft, is_set=is_set),
                    stays_open=bool(references(branch, names)),
                )
                for branch in (*table.bases, *table.steps)
            ]
            for branch in relation.branches:
                if branch.body.counts and relation.has_way and not relation.has_count:
                    relation.has_count = has_changed = True
                for at, term in enumerate(branch.row):
                    if not relation.types[at].nullable and branch.body.is_nullable(term):
                        relation.types[at] = relation.types[at].with_null(nullable=True)
                        has_changed = True
        if not has_changed:
            return
        lowering.rollback(mark)


# --- rules ---------------------------------------------------------------------------------------


def _emit(lowering: ViewLowering, relations: Sequence[RecursiveRelation], names: set[str]) -> None:
    draft = lowering.draft
    for relation in relations:
        span = relation.table.span
        draft.declare(relation.relation, relation.columns, storage=draft.storage, span=span)
    for relation in relations:
        bases = len(relation.table.bases)
        for number, branch in enumerate(relation.branches):
            row = list(branch.row)
            if relation.has_way:
                own = references(branch.query, names) if number >= bases else []
                row.append(_way(lowering, branch, number + 1, own))
            if relation.has_count:
                row.append(branch.body.count_term() or ONE)
            draft.add(relation.relation, row, branch.body.closed_items(), branch.query.span)


def _way(
    lowering: ViewLowering, branch: OpenBranch, number: int, own: Sequence[tree.RecursiveSource]
) -> Term:
    """Return the text that tells a derivation apart from others of the same row.

    Args:
        lowering: of the view.
        branch: the branch that derives the row.
        number: that of the branch.
        own: its reference to its own table; a base has none.
    """
    if not own:
        return Constant(str(number))
    draft = lowering.draft
    # What the row has itself tells nothing apart that has the same row.
    shown = {draft.resolve(each).name for each in branch.row if isinstance(each, Variable)}
    (source,) = own
    way = lowering.ways[source.number]
    shown.add(way.name)
    parts: list[Term] = [way, Constant(f"/{number}:")]
    seen = set()
    for variable in branch.body.witnesses:
        name = draft.resolve(variable).name
        if name not in shown and name not in seen:
            seen.add(name)
            parts.append(_written(branch.body, variable))
    return Functor("cat", tuple(parts))


def _written(body: RuleBody, variable: Variable) -> Term:
    """Return a value as text such that no two rows of values are the same text."""
    # Texts have their length in front, since they may have commas: "a,", "b" is not "a", ",b".
    text: Term = Functor("to_string", (variable,))
    if variable.type is not None and variable.type.is_symbol:
        size = Functor("to_string", (Functor("strlen", (variable,)),))
        text = Functor("cat", (size, Constant("'"), variable))
    written = Functor("cat", (text, Constant(",")))
    if not body.is_nullable(variable):
        return written
    return Functor("coalesce", (written, Constant("-,")))
