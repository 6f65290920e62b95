"""Whether two sets of clauses mean the same: each implies the other on canonical databases.

A clause is *frozen*: its variables become values, its body facts. If the other side derives the
frozen head from these facts, it implies the clause. Negated literals, comparisons and literals of
the clause's own recursion are facts of predicates that nobody interprets, so a yes is sure; for
plain clauses a no is too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from corollary.advisor.canonical import Edge, with_variables
from corollary.advisor.clauses import term_variables
from corollary.core.clause_printer import print_body, print_term
from corollary.core.rules import Atom, BodyItem, Clause
from corollary.core.terms import Variable, Wildcard

Facts = Mapping[str, Sequence[tuple[str, ...]]]


def is_equivalent(
    one: Sequence[Clause], other: Sequence[Clause], views: Mapping[str, Sequence[Clause]]
) -> bool:
    """Whether clauses mean the same, once views are put back in their place."""
    left, right = (
        [rule for each in side for rule in unfolded(each, views)] for side in (one, other)
    )
    return _implies(left, right) and _implies(right, left)


def unfolded(clause: Clause, views: Mapping[str, Sequence[Clause]]) -> Iterator[Clause]:
    """Yield the clauses that one stands for, with the bodies of views in their place."""
    for at, item in enumerate(clause.body):
        if isinstance(item, Atom) and item.relation in views:
            for rule in views[item.relation]:
                body = _instance(rule, item)
                made = (*clause.body[:at], *body, *clause.body[at + 1 :])
                yield from unfolded(Clause(clause.heads, made), views)
            return
    yield clause


_numbers = count()


def _instance(rule: Clause, atom: Atom) -> tuple[BodyItem, ...]:
    """Return the body of a view's rule for an atom, its other variables renamed apart."""
    number = next(_numbers)
    by: dict[str, Variable | Wildcard] = {
        each.name: Variable(f"{each.name}•{number}") for each in term_variables(rule.body)
    }
    made = with_variables(rule.body, by)
    given = {
        f"{formal.name}•{number}": actual
        for formal, actual in zip(rule.heads[0].arguments, atom.arguments, strict=True)
        if isinstance(formal, Variable)
    }
    body: tuple[BodyItem, ...] = with_variables(made, given)  # type: ignore[arg-type]
    return body


def _implies(every: Sequence[Clause], others: Iterable[Clause]) -> bool:
    """Whether some clauses derive whatever others do."""
    rules = [(_edge(each.heads[0], "head"), _edges(each.body)) for each in every]
    for clause in others:
        label, head = _edge(clause.heads[0], "head")
        facts: dict[str, list[tuple[str, ...]]] = {}
        for name, values in _edges(clause.body):
            facts.setdefault(name, []).append(values)
        if not any(
            mine == label and _derives(held, wanted, body, facts)
            for (mine, wanted), body in rules
            for held in (head,)
        ):
            return False
    return True


def _derives(
    head: tuple[str, ...], wanted: tuple[str, ...], body: Sequence[Edge], facts: Facts
) -> bool:
    """Whether a body maps into facts such that its head becomes the head that is wanted."""
    start: dict[str, str] = {}
    for variable, value in zip(wanted, head, strict=True):
        if start.setdefault(variable, value) != value:
            return False
    open_: list[tuple[int, dict[str, str]]] = [(0, start)]
    order = sorted(body, key=lambda edge: len(facts.get(edge[0], ())))
    while open_:
        at, bound = open_.pop()
        if at == len(order):
            return True
        label, names = order[at]
        for values in facts.get(label, ()):
            further = dict(bound)
            if all(
                further.setdefault(name, value) == value
                for name, value in zip(names, values, strict=True)
            ):
                open_.append((at + 1, further))
    return False


def _edges(body: Iterable[BodyItem]) -> list[Edge]:
    return [_edge(item) for item in body]


def _edge(item: BodyItem, kind: str = "") -> Edge:
    """Return an item's text without variables, and its variables; each `_` is one of its own."""
    if isinstance(item, Atom):
        shown = [
            "·" if isinstance(each, Variable | Wildcard) else _bare(each) for each in item.arguments
        ]
        names: list[str] = []
        for each in item.arguments:
            if isinstance(each, Wildcard):
                names.append(f"_•{next(_numbers)}")
            else:
                names += [variable.name for variable in term_variables(each)]
        return f"{kind}{item.sign}{item.relation}({', '.join(shown)})", tuple(names)
    names = [each.name for each in term_variables(item)]
    bare = with_variables(item, {name: Variable("·") for name in names})
    return print_body((bare,)), tuple(names)


def _bare(term: object) -> str:
    names = {each.name: Variable("·") for each in term_variables(term)}
    return print_term(with_variables(term, names))
