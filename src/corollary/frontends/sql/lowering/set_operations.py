"""UNION, INTERSECT and EXCEPT, with copies and without, and VALUES.

UNION           a rule for each branch
UNION ALL       v.each(X, 1, n) := a.rows(X, n). v.each(X, 2, n) := b.rows(X, n).
INTERSECT       a(X), b(X)            ALL: min(n, k) copies
EXCEPT          a(X), !b(X)           ALL: n copies where not in b, n - k where n > k

Branches that are sets, each with another constant in some column, are a set together.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from corollary.core import logic
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.frontends.sql import query_tree as tree
from corollary.frontends.sql.lowering import blocks
from corollary.frontends.sql.lowering.bodies import ONE, RuleBody
from corollary.frontends.sql.lowering.context import LoweredQuery, OpenBranch, ViewLowering
from corollary.frontends.sql.lowering.joins import is_inlinable


def define_set_operation(
    lowering: ViewLowering,
    operation: tree.SetOperation,
    relation: str,
    body: RuleBody,
) -> LoweredQuery:
    """Make the rules of a set operation."""
    if not operation.is_all:
        body.is_set = True
    if operation.operator is tree.SetOperator.UNION:
        branches = list(_branches(operation, is_set=body.is_set))
        return _define_union(lowering, operation, branches, relation, body)
    return _define_difference(lowering, operation, relation, body)


def _branches(query: tree.Query, *, is_set: bool) -> Iterator[tree.Query]:
    """Yield the branches of unions inside each other, which are one."""
    pending = [query]
    while pending:  # a chain of thousands is nested as deeply on its left
        part = tree.without_order(pending.pop())
        if (
            isinstance(part, tree.SetOperation)
            and part.operator is tree.SetOperator.UNION
            # A UNION below a UNION ALL takes copies away first, which matters if they are counted.
            and (part.is_all or is_set)
        ):
            pending += [part.right, part.left]
        else:
            yield part


def _columns(
    columns: Sequence[tree.QueryColumn], parts: Sequence[LoweredQuery]
) -> list[tuple[str, Type]]:
    """Return the columns of a result; one may be null if it may be in some part."""
    return [
        (column.name, column.type.with_null(any(part.types[number].nullable for part in parts)))
        for number, column in enumerate(columns)
    ]


def _row(lowering: ViewLowering, columns: Sequence[tuple[str, Type]]) -> list[blocks.ResultColumn]:
    draft = lowering.draft
    return [
        blocks.ResultColumn(name, draft.variable(name, type_), type_) for name, type_ in columns
    ]


def open_branch(
    lowering: ViewLowering, query: tree.Query, body: RuleBody, *, stays_open: bool = False
) -> OpenBranch:
    """Return the rows of a branch of a union: those of its own body, or of a relation.

    Args:
        lowering: of the view.
        query: the branch.
        body: an empty body, with the variables of queries around.
        stays_open: whether the rows are those of its body even if they have copies.
    """
    inside = body.empty_copy(is_set=body.is_set)
    if not is_inlinable(query):
        part = lowering.lower_part(query, body, is_set=body.is_set)
        return OpenBranch(query, inside, list(lowering.read(part, inside)), part.keys)
    assert isinstance(query, tree.Select)
    lowering.open_select(query, inside)
    columns = [
        blocks.ResultColumn(column.name, lowering.term(expression, inside), column.type)
        for column, expression in query.columns
    ]
    keys = blocks.output_keys(inside, columns)
    # Without a key, rows of the body may be equal: they are counted in a relation of their own.
    if body.is_set or keys or stays_open:
        return OpenBranch(query, inside, [each.term for each in columns], keys)
    with lowering.draft.placed(query.span):
        part = blocks.emit_block(lowering, lowering.draft.relation("q"), inside, columns)
    outside = body.empty_copy(is_set=False)
    return OpenBranch(query, outside, list(lowering.read(part, outside)), part.keys)


# --- unions --------------------------------------------------------------------------------------


def _define_union(
    lowering: ViewLowering,
    operation: tree.SetOperation,
    branches: Sequence[tree.Query],
    relation: str,
    body: RuleBody,
) -> LoweredQuery:
    parts = [open_branch(lowering, each, body) for each in branches]
    keys: list[frozenset[int]] | None = None
    mark = _different_constants(branches)
    if mark is not None and all(part.keys for part in parts):
        keys = _common_keys([part.keys for part in parts], mark)
    union = _Union(operation, parts, keys, "branch", has_count=True)
    return _emit_union(lowering, union, relation, body)


@dataclass(frozen=True, slots=True)
class _Union:
    """Rows of several bodies together.

    Attributes:
        query: what they are the rows of.
        keys: if they are a set, the columns that tell rows apart.
        label: what tells equal rows apart, if they are none.
        has_count: whether a row may have copies.
    """

    query: tree.SetOperation | tree.Values
    parts: Sequence[OpenBranch]
    keys: list[frozenset[int]] | None
    label: str
    has_count: bool


def _emit_union(
    lowering: ViewLowering, union: _Union, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make a rule for each body of a union."""
    draft, outer = lowering.draft, body.outer
    columns = [
        (
            column.name,
            column.type.with_null(any(part.body.is_nullable(part.row[at]) for part in union.parts)),
        )
        for at, column in enumerate(union.query.columns)
    ]
    typed = _row(lowering, columns)
    is_set = body.is_set or union.keys is not None
    if is_set:
        name = blocks.declare_result(draft, relation, outer, typed)
    else:
        name = draft.relation("each", is_numbered=False, of=relation)
        types = [(variable.name, variable.type or NUMBER) for variable in outer]
        counts = [("n", NUMBER)] if union.has_count else []
        draft.declare(name, [*types, *columns, (union.label, NUMBER), *counts])
    for number, part in enumerate(union.parts, 1):
        # Equal rows of two branches are two: the number of the branch tells them apart.
        hidden: list[logic.Term] = []
        if not is_set:
            hidden.append(logic.Constant(number))
            hidden += [part.body.count_term() or ONE] if union.has_count else []
        row = [*outer, *part.row, *hidden]
        draft.add(name, row, part.body.closed_items(), part.query.span)
    if is_set:
        return blocks.lowered(name, outer, typed, union.keys or [frozenset(range(len(columns)))])
    rows = blocks.EachRow(name, outer, len(columns), 1, union.has_count)
    return blocks.sum_up(draft, relation, rows, outer, typed)


def _different_constants(branches: Sequence[tree.Query]) -> int | None:
    """Return the number of a column that has another constant in each branch."""
    if not all(isinstance(each, tree.Select) for each in branches):
        return None
    lists = [
        [expression for _, expression in each.columns]
        for each in branches
        if isinstance(each, tree.Select)
    ]
    for number, terms in enumerate(zip(*lists, strict=True)):
        values = [tree.constant_of(term) for term in terms]
        if None not in values and len({(type(each), each) for each in values}) == len(values):
            return number
    return None


def _common_keys(parts: Sequence[Sequence[frozenset[int]]], mark: int) -> list[frozenset[int]]:
    """Return keys of a union in which a column tells the branches apart."""
    found = {key | {mark} for key in parts[0]}
    for keys in parts[1:]:
        found = {one | other for one in found for other in keys}
    # Keys multiply with the branches; the shortest ones say most.
    return sorted(found, key=lambda key: (len(key), sorted(key)))[:3]


# --- intersections and differences ---------------------------------------------------------------


def _define_difference(
    lowering: ViewLowering,
    operation: tree.SetOperation,
    relation: str,
    body: RuleBody,
) -> LoweredQuery:
    draft, outer = lowering.draft, body.outer
    is_intersection = operation.operator is tree.SetOperator.INTERSECT
    counts_copies = operation.is_all and not body.is_set
    left = lowering.lower_part(operation.left, body, is_set=not counts_copies)
    # Of a row that is there once, one copy on the right takes all, or keeps all.
    right_is_set = not counts_copies or not left.is_bag
    right = lowering.lower_part(operation.right, body, is_set=right_is_set)
    parts = (left, right) if is_intersection else (left,)
    columns = _columns(operation.columns, parts)
    inside = body.empty_copy(is_set=body.is_set)
    row = lowering.read(left, inside)
    typed = _row(lowering, columns)
    is_bag = counts_copies and left.is_bag and (right.is_bag or not is_intersection)
    count = inside.count_term()
    head: list[logic.Term] = [*outer, *row]
    if not is_bag:
        match = right.atom(tuple(row))
        inside.items.append(match if is_intersection else logic.Negation(match))
        name = blocks.declare_result(draft, relation, outer, typed)
        draft.add(name, head, inside.closed_items())
        keys = (*left.keys, *(right.keys if is_intersection else ()))
        # The left side may have a row more than once, and the right side decides that it is one.
        if left.is_bag and is_intersection:
            keys = right.keys
        found = tuple(dict.fromkeys(keys)) or (frozenset(range(len(columns))),)
        return blocks.lowered(name, outer, typed, found)
    assert count is not None
    other: logic.Variable | logic.Constant = ONE
    if right.is_bag:
        other = draft.variable("k", NUMBER)
    match = right.atom(tuple(row), other if right.is_bag else None)
    result = draft.variable("n", NUMBER)
    if is_intersection:
        items: list[logic.BodyItem] = [
            match,
            logic.Comparison("=", result, logic.Functor("min", (count, other))),
        ]
    else:
        # A row that the right side lacks has no count there to subtract.
        absent = logic.Negation(right.atom(tuple(row), logic.Wildcard()))
        items = [
            logic.Disjunction(
                (
                    (absent, logic.Comparison("=", result, count)),
                    (
                        match,
                        logic.Comparison(">", count, other),
                        logic.Comparison("=", result, logic.Functor("-", (count, other))),
                    ),
                )
            )
        ]
    inside.items += items
    name = blocks.declare_result(draft, relation, outer, typed, has_count=True)
    draft.add(name, [*head, result], inside.closed_items())
    return blocks.lowered(name, outer, typed, (), is_bag=True)


# --- VALUES --------------------------------------------------------------------------------------


def define_values(
    lowering: ViewLowering, values: tree.Values, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make the rules of `VALUES`."""
    parts = []
    for row in values.rows:
        inside = body.empty_copy(is_set=body.is_set)
        parts.append(OpenBranch(values, inside, [lowering.term(each, inside) for each in row], ()))
    constants = {tuple(map(tree.constant_of, row)) for row in values.rows}
    is_known = all(tree.constant_of(each) is not None for row in values.rows for each in row)
    keys: list[frozenset[int]] | None = None
    if len(parts) == 1:
        keys = [frozenset()]
    # Rows of constants are compared here: no two are equal.
    elif is_known and len(constants) == len(parts):
        keys = [frozenset(range(len(values.columns)))]
    union = _Union(values, parts, keys, "row", has_count=False)
    return _emit_union(lowering, union, relation, body)


def define_rows(
    lowering: ViewLowering, rows: tree.ConstantRows, relation: str, body: RuleBody
) -> LoweredQuery:
    """Make one rule that reads a relation of given rows, which are data and not rules."""
    draft, outer = lowering.draft, body.outer
    copies = Counter(rows.rows)
    has_count = not body.is_set and len(copies) < len(rows.rows)
    columns = [
        (column.name, column.type.with_null(any(row[at] is None for row in copies)))
        for at, column in enumerate(rows.columns)
    ]
    typed = _row(lowering, columns)
    given = draft.relation("given")
    counts = [("n", NUMBER)] if has_count else []
    draft.declare(given, [*columns, *counts], storage="stored")
    draft.rows[given] = (
        tuple((*row, number) for row, number in copies.items()) if has_count else tuple(copies)
    )
    inside = body.empty_copy(is_set=body.is_set)
    terms = [each.term for each in typed] + [draft.variable(*each) for each in counts]
    inside.items.append(logic.Atom(given, tuple(terms)))
    name = blocks.declare_result(draft, relation, outer, typed, has_count=has_count)
    draft.add(name, [*outer, *terms], inside.closed_items())
    keys = [] if has_count else [frozenset(range(len(columns)))]
    return blocks.lowered(name, outer, typed, keys, is_bag=has_count)
