"""Blocks: the rows of a body become a relation, a set where its columns tell the rows apart.

v(X) := body.                                                    a set
v.each(X, W, n1 * n2) := body.                                   a bag
v.rows(X, n) := v.each(X, _, _), n = sum m : { v.each(X, _, m) }.

W are the variables that tell the rows of the body apart.
"""

from collections.abc import Sequence

from corollary.core.logic import AggregateTerm, Atom, BodyItem, Comparison, Term, Variable, Wildcard
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.frontends.sql.lowering.bodies import RuleBody, inverted
from corollary.frontends.sql.lowering.context import LoweredQuery, ViewLowering
from corollary.frontends.sql.lowering.draft import ViewDraft, names_of
from corollary.frontends.sql.lowering.set_analysis import Dependencies

COUNT_COLUMN = "copies"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name, its value in a body, its type."""

    name: str
    term: Term
    type: Type


def output_keys(body: RuleBody, columns: Sequence[ResultColumn]) -> list[frozenset[int]]:
    """Return the sets of columns that tell the rows of a body apart; none if there are copies."""
    if body.counts:
        return []
    known = Dependencies(list(body.known.rules))
    names = [f"#{number}" for number, _ in enumerate(columns)]
    for name, column in zip(names, columns, strict=True):
        known.add(names_of(column.term), {name})
        back = inverted(column.term)
        if back is not None:
            known.add({name}, {back.name})
    given = {each.name for each in body.outer}
    return known.keys(names, given, {each.name for each in body.witnesses})


def emit_block(
    lowering: ViewLowering,
    relation: str,
    body: RuleBody,
    columns: Sequence[ResultColumn],
) -> LoweredQuery:
    """Make the rules for the rows of a body."""
    draft = lowering.draft
    keys = output_keys(body, columns)
    typed = [
        ResultColumn(each.name, each.term, body.column_type(each.term, each.type))
        for each in columns
    ]
    if body.is_set or keys:
        declare_result(draft, relation, body.outer, typed)
        terms = [*body.outer, *(each.term for each in columns)]
        draft.add(relation, terms, body.closed_items())
        found = keys or [frozenset(range(len(columns)))]
        return lowered(relation, body.outer, typed, found)
    each = emit_each(draft, relation, body, typed)
    return sum_up(draft, relation, each, body.outer, typed)


def lowered(
    relation: str,
    outer: tuple[Variable, ...],
    columns: Sequence[ResultColumn],
    keys: Sequence[frozenset[int]],
    *,
    is_bag: bool = False,
) -> LoweredQuery:
    """Return what is known of a relation of some columns."""
    return LoweredQuery(
        relation,
        outer,
        tuple(each.name for each in columns),
        tuple(each.type for each in columns),
        is_bag,
        tuple(keys),
    )


def declare_result(
    draft: ViewDraft,
    relation: str,
    outer: tuple[Variable, ...],
    columns: Sequence[ResultColumn],
    *,
    has_count: bool = False,
) -> str:
    """Declare the relation of a query, and return its name: `v.rows` if it counts copies."""
    types = [*draft.columns_of(outer), *((each.name, each.type) for each in columns)]
    storage, span = draft.storage_of(relation), draft.span
    if not has_count or relation == draft.view:
        draft.declare(relation, types, storage=storage, is_bag=has_count, span=span)
        return f"{relation}.rows" if has_count else relation
    name = draft.relation("rows", is_numbered=False, of=relation)
    draft.declare(name, [*types, (COUNT_COLUMN, NUMBER)], storage=storage, span=span)
    return name


# --- bags ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EachRow:
    """A relation with a tuple for each row of a body: `v.each(O, X, W, n)`.

    Attributes:
        width: the number of columns X.
        witnesses: the number of columns W.
        has_count: whether a last column has the number of copies.
    """

    relation: str
    outer: tuple[Variable, ...]
    width: int
    witnesses: int
    has_count: bool

    def atom(self, columns: Sequence[Term], count: Term | None = None) -> Atom:
        """Return a literal with the columns X and the count."""
        wild = [Wildcard() for _ in range(self.witnesses)]
        counts = [count or Wildcard()] if self.has_count else []
        return Atom(self.relation, (*self.outer, *columns, *wild, *counts))


def emit_each(
    draft: ViewDraft,
    relation: str,
    body: RuleBody,
    columns: Sequence[ResultColumn],
) -> EachRow:
    """Make the relation with a tuple for each row of a body."""
    name = draft.relation("each", is_numbered=False, of=relation)
    shown = {
        draft.resolve(each).name
        for each in (*body.outer, *(each.term for each in columns))
        if isinstance(each, Variable)
    }
    witnesses: dict[str, Variable] = {}
    for variable in body.witnesses:
        resolved = draft.resolve(variable).name
        if resolved not in shown:
            witnesses.setdefault(resolved, variable)
    types = [*draft.columns_of(body.outer), *((each.name, each.type) for each in columns)]
    types += [
        (draft.hint(each), body.column_type(each, each.type or NUMBER))
        for each in witnesses.values()
    ]
    count = body.count_term()
    if count is not None:
        types.append(("n", NUMBER))
    draft.declare(name, types)
    terms = [*body.outer, *(each.term for each in columns), *witnesses.values()]
    counts = [] if count is None else [count]
    draft.add(name, [*terms, *counts], body.closed_items())
    return EachRow(name, body.outer, len(columns), len(witnesses), count is not None)


def sum_up(
    draft: ViewDraft,
    relation: str,
    each: EachRow,
    outer: tuple[Variable, ...],
    columns: Sequence[ResultColumn],
) -> LoweredQuery:
    """Make the relation that says how often each row is there."""
    name = declare_result(draft, relation, outer, columns, has_count=True)
    row = [draft.variable(column.name, column.type) for column in columns]
    total = draft.variable("n", NUMBER)
    if each.has_count:
        copies = draft.variable("m", NUMBER)
        value = AggregateTerm("sum", copies, (each.atom(row, copies),))
    else:
        value = AggregateTerm("count", None, (each.atom(row),))
    items: list[BodyItem] = [each.atom(row), Comparison("=", total, value)]
    draft.add(name, [*outer, *row, total], items)
    return lowered(name, outer, columns, (), is_bag=True)
