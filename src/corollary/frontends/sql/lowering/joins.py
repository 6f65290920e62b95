"""Sources of a `FROM`: tables, queries and joins become literals and alternatives of the body.

    L JOIN R ON c         L, R, c
    L LEFT JOIN R ON c    L, (R, c ; !j.some(Z), R is null)         j.some(Z) := R, c.
    L FULL JOIN R ON c    (L, R, c ; L, !j.some(Z), R is null ; R, !j.some2(Y), L is null)
    L SEMI JOIN R ON c    L, j.some(Z)                              ANTI: L, !j.some(Z)

Z are the variables of L in c. The number of copies of a side that is not there is 1.
"""

from typing import assert_never

from corollary.core import logic
from corollary.core.types import NUMBER
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering.bodies import NULL, ONE, RuleBody
from corollary.frontends.sql.lowering.context import ViewLowering, note_row
from corollary.frontends.sql.lowering.draft import names_of
from corollary.frontends.sql.lowering.set_analysis import Dependencies


def add_table(lowering: ViewLowering, source: tree.TableSource, body: RuleBody) -> None:
    """Add a literal of a table."""
    draft = lowering.draft
    variables = [draft.variable(column.name, column.type) for column in source.columns]
    count = draft.variable("n", NUMBER) if source.is_bag else None
    relation = f"{source.relation}.rows" if source.is_bag else source.relation
    counts = () if count is None else (count,)
    body.items.append(logic.Atom(relation, (*variables, *counts)))
    note_row(body, variables, count, source.keys, set())
    lowering.columns[source.number] = list(variables)
    body.sources.append(source.number)


def add_range(lowering: ViewLowering, source: tree.RangeSource, body: RuleBody) -> None:
    """Add a variable that is each number of a range."""
    number = lowering.draft.variable(source.columns[0].name, NUMBER)
    bounds = tuple(lowering.term(each, body) for each in source.arguments)
    body.items.append(logic.Comparison("=", number, logic.Functor("range", bounds)))
    note_row(body, [number], None, (frozenset({0}),), set())
    lowering.columns[source.number] = [number]
    body.sources.append(source.number)


def add_query(lowering: ViewLowering, source: tree.SubquerySource, body: RuleBody) -> None:
    """Add a query in `FROM`: its own literals if it is a plain block that is read once."""
    query = tree.without_order(source.query)
    is_shared = source.cte is not None and lowering.readers[source.cte] > 1
    if is_inlinable(query) and not is_shared:
        assert isinstance(query, tree.Select)
        lowering.open_select(query, body)
        lowering.columns[source.number] = [
            lowering.term(expression, body) if (source.number, number) in lowering.used else NULL
            for number, (_, expression) in enumerate(query.columns)
        ]
        body.sources.append(source.number)
        return
    if source.cte is not None and is_shared and not lowering.free_references(query):
        known = lowering.known.get(source.cte)
        if known is None or (not body.is_set and source.cte in lowering.sets):
            inner = lowering.inner_body(query, body, is_set=body.is_set)
            known = lowering.define(query, lowering.draft.relation(_label(source.cte)), inner)
            lowering.known[source.cte] = known
            lowering.sets.discard(source.cte)
            if body.is_set:
                lowering.sets.add(source.cte)
        lowered = known
    else:
        lowered = lowering.lower(query, body, is_set=body.is_set)
    lowering.columns[source.number] = list(lowering.read(lowered, body))
    body.sources.append(source.number)


def _label(name: str) -> str:
    """Return a label for the relation of a common table expression."""
    return name.rsplit(".", 1)[-1] or "q"


def is_inlinable(query: tree.Query) -> bool:
    """Whether the rows of a query are those of its `FROM`."""
    return (
        isinstance(query, tree.Select)
        and query.group_by is None
        and query.grouping_sets is None
        and query.having is None
        and not query.is_distinct
        and not tree.calls_in(query.columns, tree.WindowCall)
    )


# --- joins ---------------------------------------------------------------------------------------


def add_join(lowering: ViewLowering, join: tree.JoinedSource, body: RuleBody) -> None:
    """Add a join."""
    match join.kind:
        case tree.JoinKind.INNER:
            lowering.add_source(join.left, body)
            lowering.add_source(join.right, body)
            lowering.add_condition(join.condition, body)
        case tree.JoinKind.LEFT:
            lowering.add_source(join.left, body)
            _add_left(lowering, join, body)
        case tree.JoinKind.FULL:
            _add_full(lowering, join, body)
        case tree.JoinKind.SEMI | tree.JoinKind.ANTI:
            lowering.add_source(join.left, body)
            right = RuleBody(
                lowering.draft, body.outer, is_set=True, make_outer=body.make_outer, is_side=True
            )
            lowering.add_source(join.right, right)
            matched = _matched(lowering, join.condition, body, right)
            test = _test(lowering, body, [*right.items, *matched.items], join)
            body.items.append(test if join.kind is tree.JoinKind.SEMI else logic.Negation(test))
        case _:
            assert_never(join.kind)


def _side(lowering: ViewLowering, source: tree.Source, body: RuleBody) -> RuleBody:
    """Return a side of an outer join; its columns are variables, which may be null elsewhere."""
    side = RuleBody(lowering.draft, body.outer, body.is_set, body.make_outer, is_side=True)
    if isinstance(source, tree.SubquerySource) and any(
        each.source in body.sources for each in lowering.free_references(source.query)
    ):  # LATERAL: its rows are those for values of the other side
        lowered = lowering.lower(tree.without_order(source.query), body, is_set=body.is_set)
        lowering.columns[source.number] = list(lowering.read(lowered, side))
        side.sources.append(source.number)
    else:
        lowering.add_source(source, side)
    if side.alternatives > 1:
        lowering.cut(side)
    for each in tree.sources_in(source):
        terms = lowering.columns.get(each.number)
        if each.number in side.sources and terms is not None:
            for number, term in enumerate(terms):
                if (each.number, number) in lowering.used and not isinstance(term, logic.Variable):
                    column = each.columns[number]
                    terms[number] = side.bind(column.name, term, column.type)
    return side


def _matched(
    lowering: ViewLowering, condition: tree.Expression | None, body: RuleBody, right: RuleBody
) -> RuleBody:
    """Return what a join's condition adds to both sides."""
    both = RuleBody(
        lowering.draft, body.outer, body.is_set, items=[*body.all_items(), *right.items]
    )
    for side in (body, right):
        both.known.include(side.known)
        both.padded |= side.padded
    matched = RuleBody(
        lowering.draft, body.outer, body.is_set, body.make_outer, base=both, can_unify=False
    )
    lowering.add_condition(condition, matched)
    return matched


def _test(
    lowering: ViewLowering, body: RuleBody, items: list[logic.BodyItem], join: tree.JoinedSource
) -> logic.Atom:
    """Return the literal that says that a row of a body has a match.

    Args:
        lowering: the view.
        body: the side of the row.
        items: those of the other side and of the condition.
        join: the join.
    """
    draft = lowering.draft
    inside = names_of(*draft.plain_items(items))
    terms = [term for number in body.sources for term in lowering.columns[number]]
    found = {draft.resolve(each).name: each for each in body.outer}
    for variable in body.visible(terms):
        found.setdefault(draft.resolve(variable).name, variable)
    keys = tuple(variable for name, variable in found.items() if name in inside)
    test = RuleBody(draft, keys, is_set=True, items=list(items))
    test.take_nulls(keys, body)
    test.make_outer = lambda: lowering.project(keys, body, "of")
    return lowering.project(keys, test, "some", join.span)


def _absent(lowering: ViewLowering, side: RuleBody) -> list[logic.BodyItem]:
    """Return the items that make the columns of a side null, and its counts 1."""
    terms = [term for number in side.sources for term in lowering.used_columns(number)]
    counts = {each.name for each in side.counts}
    return [
        logic.Comparison("is", variable, ONE if variable.name in counts else NULL)
        for variable in side.visible(terms)
    ]


def _take_over(lowering: ViewLowering, body: RuleBody, side: RuleBody) -> None:
    """Let a body have the columns of a side, all of which may be null now."""
    terms = [term for number in side.sources for term in lowering.used_columns(number)]
    counts = {each.name for each in side.counts}
    body.padded |= {each.name for each in side.visible(terms)} - counts
    body.padded |= {each.name for term in terms for each in logic.variables_of(term)} - counts
    body.padded |= {each.name for each in (*side.witnesses, *side.values)} - counts
    body.known.not_null |= counts
    body.counts += side.counts
    body.witnesses += side.witnesses
    body.values += side.values
    body.sources += side.sources


def _add_left(lowering: ViewLowering, join: tree.JoinedSource, body: RuleBody) -> None:
    side = _side(lowering, join.right, body)
    matched = _matched(lowering, join.condition, body, side)
    items = [*side.items, *matched.items]
    test = _test(lowering, body, items, join)
    left = {each.name for each in (*body.witnesses, *body.outer)}
    witnesses = [each.name for each in side.witnesses]
    known = body.known
    both = Dependencies([*known.rules, *side.known.rules, *matched.known.rules])
    determines_right = both.determines(left, witnesses)
    padded = [logic.Negation(test), *_absent(lowering, side)]
    body.choose([items, padded], lowering.cut, test=test)
    # Whether a row is padded depends on its left side only.
    for lefts, rights in (*side.known.rules, *matched.known.rules):
        known.add({*left, *lefts}, rights)
    for lefts, rights in side.known.rules:
        if lefts & side.known.not_null:
            known.add(lefts, rights)
    if determines_right:
        known.add(left, witnesses)
    _take_over(lowering, body, side)


def _add_full(lowering: ViewLowering, join: tree.JoinedSource, body: RuleBody) -> None:
    left = _side(lowering, join.left, body)
    right = _side(lowering, join.right, body)
    matched = _matched(lowering, join.condition, left, right)
    test_left = _test(lowering, left, [*right.items, *matched.items], join)
    test_right = _test(lowering, right, [*left.items, *matched.items], join)
    alternatives: list[list[logic.BodyItem]] = [
        [*left.items, *right.items, *matched.items],
        [*left.items, logic.Negation(test_left), *_absent(lowering, right)],
        [*right.items, logic.Negation(test_right), *_absent(lowering, left)],
    ]
    present = [side.known.not_null - {each.name for each in side.counts} for side in (left, right)]
    if not any(present) and not body.is_set:
        # Else two rows of nulls without a match, one of each side, become one.
        which = lowering.draft.variable("side", NUMBER)
        for number, items in enumerate(alternatives):
            items.append(logic.Comparison("is", which, logic.Constant(number)))
        body.witnesses.append(which)
        body.known.not_null.add(which.name)
    body.choose(alternatives, lowering.cut)
    for side, own, other, others in (
        (left, present[0], right, present[1]),
        (right, present[1], left, present[0]),
    ):
        whole = {each.name for each in (*other.witnesses, *body.outer)} | others
        for lefts, rights in side.known.rules:
            if lefts & own:
                body.known.add(lefts, rights)
            if others:
                body.known.add({*whole, *lefts}, rights)
    _take_over(lowering, body, left)
    _take_over(lowering, body, right)
