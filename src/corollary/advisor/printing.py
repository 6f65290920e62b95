"""From nodes back to clauses: bodies in the order of the text, `_` where it was written."""

from collections import Counter
from collections.abc import Callable, Mapping

from corollary.advisor.candidates import Body, Candidate, Leaf, Node, expanded, in_order
from corollary.advisor.canonical import with_variables
from corollary.advisor.clauses import ClauseForm, Test, as_atom, term_variables
from corollary.advisor.reading_clauses import ANONYMOUS
from corollary.core.rules import Atom, BodyItem, Clause
from corollary.core.terms import Variable, Wildcard

Naming = Callable[[Candidate], tuple[str, tuple[str, ...]]]
"""Gives the name of a stored candidate, and its variables in the order of the view's columns."""

Positions = Mapping[object, int]

LAST = 1 << 30
"""Where an item stands that the text of the clause does not have."""


def original_clause(form: ClauseForm) -> Clause:
    """Return a clause as it was read."""
    return body_clause(form, (*form.literals, *form.tests), _no_names)


def body_clause(form: ClauseForm, body: Body, naming: Naming) -> Clause:
    """Return a clause with another body; pinned items stay."""
    placed: list[tuple[int, BodyItem]] = [
        (form.positions.get(each, LAST), each.item) for each in form.pinned
    ]
    placed += [(_position(node, form.positions), _item(node, naming)) for node in body]
    items = tuple(item for _, item in sorted(placed, key=lambda each: each[0]))
    return with_wildcards(Clause((form.head,), items))


def view_clauses(
    name: str, order: tuple[str, ...], node: Candidate, positions: Positions
) -> tuple[Clause, ...]:
    """Return the rules of a view over the input, bodies in the order of the text."""
    head = Atom(name, tuple(Variable(each) for each in order))
    found = []
    for leaves in expanded(node):
        placed = sorted(leaves, key=lambda leaf: positions.get(leaf, LAST))
        body = tuple(_item(leaf, _no_names) for leaf in placed)
        found.append(with_wildcards(Clause((head,), body)))
    return tuple(found)


def in_text_order(node: Candidate, positions: Positions) -> tuple[str, ...]:
    """Return the variables of a candidate in the order in which the text mentions them."""
    leaves = sorted(expanded(node)[0], key=lambda leaf: positions.get(leaf, LAST))
    found = in_order(leaves, frozenset(node.variables))
    return (*found, *(name for name in node.variables if name not in found))


def with_wildcards(clause: Clause) -> Clause:
    """Return a clause where variables that were `_` are so again, unless they came to be joined."""
    counts = Counter(each.name for each in term_variables(clause))
    by: dict[str, Variable | Wildcard] = {}
    for name, count in counts.items():
        if name.startswith(ANONYMOUS):
            plain = f"v{name.removeprefix(ANONYMOUS)}"
            while plain in counts:
                plain = f"v{plain}"
            by[name] = Wildcard() if count == 1 else Variable(plain)
    made = with_variables(clause, by)
    assert isinstance(made, Clause)
    return made


def _item(node: Node, naming: Naming) -> BodyItem:
    if isinstance(node, Candidate):
        name, order = naming(node)
        return Atom(name, tuple(Variable(each) for each in order))
    return node.item if isinstance(node, Test) else as_atom(node)


def _position(node: Node, positions: Positions) -> int:
    leaves: list[Leaf] = [leaf for body in expanded(node) for leaf in body]
    return min((positions.get(leaf, LAST) for leaf in leaves), default=LAST)


def _no_names(_: Candidate) -> tuple[str, tuple[str, ...]]:
    raise AssertionError("nothing is stored here")
