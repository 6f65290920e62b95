"""Names of new views, and clauses from nodes: bodies in the order of the text, `_` as written."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from corollary.advisor.model import candidates
from corollary.advisor.model.canonical import CanonicalForms, canonical_view
from corollary.advisor.model.scheme import (
    AggregateBlock,
    AggregatingClause,
    Scheme,
    ViewNaming,
    determined_variables,
)
from corollary.core import logic
from corollary.core.syntax import is_bare_word
from corollary.data_class import dataclass
from corollary.errors import InputError

NameOf = Callable[[candidates.Candidate], tuple[str, tuple[logic.Slot, ...]]]
"""Gives the name of a stored candidate, and its arguments in the order of the view's columns."""

MeasuresByForm = Mapping[str, Sequence[candidates.Measure]]
"""The measures that queries use of each summary, by its form."""

Positions = Mapping[object, int]
"""The positions of literals and pinned items in the text of their clause."""

LAST_POSITION = 1 << 30
"""The position of an item that is not in the text of the clause."""


# --- names ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedView:
    """A candidate with a name, and its variables in the order of the columns."""

    name: str
    node: candidates.Candidate
    order: tuple[str, ...]
    positions: Positions


class ViewNames:
    """Gives names that no relation of the program has; candidates of one form share a name.

    A candidate that equals a materialised view of the program gets the name of that view.
    """

    def __init__(
        self,
        scheme: Scheme,
        forms: CanonicalForms,
        naming: ViewNaming | None = None,
        measures: MeasuresByForm | None = None,
    ) -> None:
        self._forms = forms
        self._measures = {} if measures is None else measures
        self._taken = set(scheme.relations)
        self._naming = naming or ViewNaming()
        self._given = list(self._naming.given)
        self._new: dict[str, NamedView] = {}
        self._existing: dict[str, tuple[str, tuple[int, ...]]] = {}
        queries = {each.relation for each in scheme.queries}
        for name, relation in scheme.relations.items():
            view = relation.view
            if view is not None and view.is_complete and name not in queries:
                key, order = canonical_view(view.variables, view.bodies)
                columns = tuple(view.variables.index(each) for each in order)
                self._existing.setdefault(key, (name, columns))

    def name_of(
        self, node: candidates.Candidate, query: str, positions: Positions
    ) -> tuple[str, tuple[logic.Slot, ...]]:
        """Return the name of a candidate's view, and its arguments in the order of the columns.

        Args:
            node: the candidate.
            query: the predicate that it is for.
            positions: those of the literals of its clause.
        """
        # Canonical orders translate between the variables of isomorphic candidates.
        key, canonical = self._forms.key(node), self._forms.order(node)
        terms = dict(zip(node.view.variables, node.arguments, strict=True))
        if key in self._existing:
            name, columns = self._existing[key]
            by_column = dict(zip(columns, canonical, strict=True))
            return name, tuple(terms[by_column[at]] for at in range(len(columns)))
        if key not in self._new:
            order = in_text_order(node.view, positions)
            self._new[key] = NamedView(self._fresh(query, node.view), node.view, order, positions)
        first = self._new[key]
        by_first = dict(zip(self._forms.order(first.node), canonical, strict=True))
        arguments = [terms[by_first[each]] for each in first.order]
        asked = None if node.general is None else node.general.measure
        measures = (
            logic.Variable(MEASURE) if each == asked else logic.Wildcard()
            for each in self._measures.get(key, ())
        )
        return first.name, (*arguments, *measures)

    def new_views(self) -> Iterator[NamedView]:
        """Yield the views that got a new name."""
        yield from self._new.values()

    def _fresh(self, query: str, node: candidates.Candidate) -> str:
        if self._given:
            name = self._given.pop(0)
            self._check_name(name)
            self._taken.add(name)
            return name
        if self._naming.uses_initials:
            return unused_name(initials(node), self._taken)
        stem, number = f"mv_{query.replace('.', '_')}", 1
        while f"{stem}_{number}" in self._taken:
            number += 1
        name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def _check_name(self, name: str) -> None:
        """Check that a name that was given can be that of a new view.

        Raises:
            InputError: `C1107`.
        """
        if name in self._taken or not is_bare_word(name):
            why = "a relation has it" if name in self._taken else "it is not a plain word"
            message = f"`{name}` cannot be the name of a new view: {why}."
            raise InputError.of("C1107", message, None, "give another name with `--name`")


def initials(node: candidates.Node) -> str:
    """Return a name of the initials of relations, as in the paper.

    A group has the initials of its members, a projection the first and the last one of its group:
    `p` and `r` give `pr`, with `w` `prw`, and without a variable `pw`.
    """
    if isinstance(node, logic.Literal):
        return node.relation.rpartition(".")[2][:1].lower()
    if isinstance(node, candidates.MovableComparison):
        return ""
    if len(node.bodies) == 1 and len(node.bodies[0]) == 1:
        name = initials(node.bodies[0][0])
        return name[0] + name[-1] if len(name) > 2 else name
    members = [part for body in node.bodies for part in body]
    if len(node.bodies) > 1:  # a union: what its alternatives begin with
        members = [body[0] for body in node.bodies]
    return "".join(initials(each) for each in members)


def unused_name(name: str, taken: set[str]) -> str:
    """Return a name, with a number if it is taken, and take it."""
    found, number = name, 0
    while not found or found in taken:
        number += 1
        found = f"{name or 'c'}{number}"
    taken.add(found)
    return found


# --- summaries -----------------------------------------------------------------------------------

MEASURE = "•measure"
"""The variable of the measure that an aggregate uses, until it gets its name."""
ROWS_SUFFIX = "each"
"""After the name of a summary: the relation whose rows it aggregates."""
MEASURE_WORDS = {"sum": "total", "count": "counted", "min": "least", "max": "greatest"}


def measure_columns(
    node: candidates.Candidate, measures: Iterable[candidates.Measure]
) -> tuple[str, ...]:
    """Return the names of the measures of a summary: `sum_price`, `n`; `total` of an expression."""
    taken = {each for leaf in candidates.expand(node)[0] for each in candidates.variables_of(leaf)}
    found = []
    for each in measures:
        name = "n" if each.operator == "count" else MEASURE_WORDS[each.operator]
        if isinstance(each.target, logic.Variable):
            name = f"{each.operator}_{each.target.name}"
        found.append(unused_name(name, taken))
    return tuple(found)


def summary_rows(
    node: candidates.Candidate, measures: Sequence[candidates.Measure], scheme: Scheme
) -> tuple[str, ...]:
    """Return variables of the body of a summary that determine all others, in order.

    A tuple of them stands for one assignment. Groups and targets are among them.
    """
    literals = [each for each in candidates.expand(node)[0] if isinstance(each, logic.Literal)]
    every = candidates.output_variables(literals)
    needed = {each.name for measure in measures for each in candidates.term_variables(measure)}
    kept = set(every)
    for name in sorted(every - needed - set(node.variables)):
        rest = kept - {name}
        if every <= determined_variables(rest, literals, scheme.relations):
            kept = rest
    return candidates.in_order(literals, kept)


def summary_clauses(
    view: NamedView, measures: Sequence[candidates.Measure], scheme: Scheme
) -> tuple[logic.Clause, ...]:
    """Return the rules of a summary: that of its rows, and that of its groups."""
    rows = f"{view.name}.{ROWS_SUFFIX}"
    columns = summary_rows(view.node, measures, scheme)
    (of_rows,) = view_clauses(rows, columns, view.node, view.positions)

    def atom(named: Iterable[str]) -> logic.Atom:
        names = frozenset(named)
        return logic.Atom(
            rows, tuple(logic.Variable(n) if n in names else logic.Wildcard() for n in columns)
        )

    names = measure_columns(view.node, measures)
    body: list[logic.BodyItem] = [atom(view.order)]
    for name, each in zip(names, measures, strict=True):
        target = [] if each.target is None else candidates.term_variables(each.target)
        inside = atom([*view.order, *(variable.name for variable in target)])
        value = logic.AggregateTerm(each.operator, each.target, (inside,))
        body.append(logic.Comparison("=", logic.Variable(name), value))
    head = logic.Atom(view.name, tuple(logic.Variable(each) for each in (*view.order, *names)))
    # A group may have null for a key.
    return of_rows, _with_wildcards(logic.Clause((head,), tuple(body), is_null_safe=True))


def aggregating_clause(
    clause: AggregatingClause,
    bodies: Mapping[candidates.SchemeClause, candidates.Body],
    name_of: NameOf,
) -> logic.Clause:
    """Return a clause that aggregates, with views in the parts that use one.

    Args:
        clause: as it was read.
        bodies: the nodes of each of its parts.
        name_of: gives the names of views.
    """
    outer = clause.outer
    uses = {part for part, body in bodies.items() if _has_view(body)}
    found = original_clause(clause.written)
    if outer in uses:
        found = body_clause(outer, bodies[outer], name_of)
    taken = {each.name for each in candidates.term_variables((found, original_clause(outer)))}
    by: dict[logic.AggregateTerm, logic.Term] = {}
    for block in clause.blocks:
        if block.clause in uses:
            by[block.term] = _block_term(block, bodies[block.clause], name_of, set(taken))
    replaced = candidates.replace_parts(
        found, lambda part: by.get(part, part) if isinstance(part, logic.AggregateTerm) else None
    )
    assert isinstance(replaced, logic.Clause)
    return replaced


def _has_view(body: candidates.Body) -> bool:
    return any(isinstance(each, candidates.Candidate) for each in body)


def _block_term(
    block: AggregateBlock, body: candidates.Body, name_of: NameOf, taken: set[str]
) -> logic.AggregateTerm:
    """Return an aggregate over the measure of a summary: counts are added up."""
    items = body_clause(block.clause, body, name_of).body
    taken |= {each.name for each in candidates.term_variables(items)}
    target = logic.Variable(unused_name(MEASURE_WORDS[block.term.operator], taken))
    operator = "sum" if block.term.operator == "count" else block.term.operator
    return logic.AggregateTerm(operator, target, candidates.substitute(items, {MEASURE: target}))


# --- clauses -------------------------------------------------------------------------------------


def original_clause(clause: candidates.SchemeClause) -> logic.Clause:
    """Return a clause as it was read."""
    return body_clause(clause, clause.leaves, _no_name)


def body_clause(
    clause: candidates.SchemeClause, body: candidates.Body, name_of: NameOf
) -> logic.Clause:
    """Return a clause with another body; pinned items stay."""
    positions = clause.positions
    items: list[tuple[int, logic.BodyItem]] = [
        (positions.get(each, LAST_POSITION), each.item) for each in clause.pinned
    ]
    items += [(_position(node, positions), _item(node, name_of)) for node in body]
    items.sort(key=lambda each: each[0])
    body_items = tuple(item for _, item in items)
    return _with_wildcards(
        logic.Clause((clause.head,), body_items, is_null_safe=clause.is_null_safe)
    )


def view_clauses(
    name: str, order: tuple[str, ...], node: candidates.Candidate, positions: Positions
) -> tuple[logic.Clause, ...]:
    """Return the rules of a view over the input, bodies in the order of the text."""
    head = logic.Atom(name, tuple(logic.Variable(each) for each in order))
    found = []
    for leaves in candidates.expand(node):
        body = tuple(_item(leaf, _no_name) for leaf in _sort(leaves, positions))
        found.append(_with_wildcards(logic.Clause((head,), body)))
    return tuple(found)


def step_clauses(
    name: str, node: candidates.Candidate, name_of: NameOf
) -> tuple[logic.Clause, ...]:
    """Return the rules of a candidate over the nodes that it was made of."""
    head = logic.Atom(name, tuple(logic.Variable(each) for each in node.variables))
    return tuple(
        _with_wildcards(logic.Clause((head,), tuple(_item(each, name_of) for each in body)))
        for body in node.bodies
    )


def in_text_order(node: candidates.Candidate, positions: Positions) -> tuple[str, ...]:
    """Return the variables of a candidate in the order in which the text mentions them."""
    found = candidates.in_order(
        _sort(candidates.expand(node)[0], positions), frozenset(node.variables)
    )
    return (*found, *(name for name in node.variables if name not in found))


def _with_wildcards(clause: logic.Clause) -> logic.Clause:
    """Return a clause where variables that were `_` are so again, unless they are joined now."""
    counts = Counter(each.name for each in candidates.term_variables(clause))
    by: dict[str, logic.Term] = {}
    for name, count in counts.items():
        if name.startswith(candidates.ANONYMOUS):
            plain = f"v{name.removeprefix(candidates.ANONYMOUS)}"
            while plain in counts:
                plain = f"v{plain}"
            by[name] = logic.Wildcard() if count == 1 else logic.Variable(plain)
    found = candidates.substitute(clause, by)
    assert isinstance(found, logic.Clause)
    return found


def _item(node: candidates.Node, name_of: NameOf) -> logic.BodyItem:
    if isinstance(node, candidates.Candidate):
        return logic.Atom(*name_of(node))
    return node.item if isinstance(node, candidates.MovableComparison) else candidates.as_atom(node)


def _sort(leaves: tuple[candidates.Leaf, ...], positions: Positions) -> list[candidates.Leaf]:
    return sorted(leaves, key=lambda leaf: positions.get(leaf, LAST_POSITION))


def _position(node: candidates.Node, positions: Positions) -> int:
    leaves = (leaf for body in candidates.expand(node) for leaf in body)
    return min((positions.get(leaf, LAST_POSITION) for leaf in leaves), default=LAST_POSITION)


def _no_name(_: candidates.Candidate) -> tuple[str, tuple[logic.Slot, ...]]:
    raise AssertionError("nothing is stored here")
