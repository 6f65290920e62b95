"""Equivalence of two sets of clauses: each implies the other on canonical databases.

A clause is *frozen*: its variables become values, its body facts. If the other side derives the
frozen head from these facts, it implies the clause. Negated literals, comparisons and literals of
the clause's own recursion are facts of uninterpreted predicates. So the test is sound; for plain
Horn clauses it is exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from corollary.advisor.model.candidates import substitute, term_variables
from corollary.advisor.model.canonical import Edge, item_edge
from corollary.core.logic import Atom, BodyItem, Clause, Term, Variable, Wildcard
from corollary.core.printer import print_term

Facts = Mapping[str, Sequence[tuple[str, ...]]]


def is_equivalent(
    one: Sequence[Clause], other: Sequence[Clause], views: Mapping[str, Sequence[Clause]]
) -> bool:
    """Whether clauses are equivalent, once views are unfolded."""
    left, right = (
        [rule for each in side for rule in _unfold(each, views)] for side in (one, other)
    )
    return _implies(left, right) and _implies(right, left)


def _unfold(clause: Clause, views: Mapping[str, Sequence[Clause]]) -> Iterator[Clause]:
    """Yield a clause with the bodies of views in place of their atoms, one for each choice."""
    for at, item in enumerate(clause.body):
        if isinstance(item, Atom) and item.relation in views:
            for rule in views[item.relation]:
                body = _instance(rule, item)
                items = (*clause.body[:at], *body, *clause.body[at + 1 :])
                yield from _unfold(Clause(clause.heads, items), views)
            return
    yield clause


_numbers = count()


def _instance(rule: Clause, atom: Atom) -> tuple[BodyItem, ...]:
    """Return the body of a view's rule for an atom, its other variables renamed apart."""
    number = next(_numbers)
    by: dict[str, Term] = {
        each.name: Variable(f"{each.name}•{number}") for each in term_variables(rule.body)
    }
    for formal, actual in zip(rule.heads[0].arguments, atom.arguments, strict=True):
        if isinstance(formal, Variable):
            by[formal.name] = actual
    body: tuple[BodyItem, ...] = substitute(rule.body, by)
    return body


def _implies(clauses: Sequence[Clause], others: Iterable[Clause]) -> bool:
    """Whether clauses derive the frozen heads of others from their frozen bodies."""
    rules = [(_edge(each.heads[0], "head"), list(map(_edge, each.body))) for each in clauses]
    for clause in others:
        label, head = _edge(clause.heads[0], "head")
        facts: dict[str, list[tuple[str, ...]]] = {}
        for name, values in map(_edge, clause.body):
            facts.setdefault(name, []).append(values)
        if not any(
            own == label and _derives(head, variables, body, facts)
            for (own, variables), body in rules
        ):
            return False
    return True


def _derives(
    head: tuple[str, ...], variables: tuple[str, ...], body: Sequence[Edge], facts: Facts
) -> bool:
    """Whether a rule derives a head from facts: a homomorphism maps its body into them."""
    start: dict[str, str] = {}
    for variable, value in zip(variables, head, strict=True):
        if start.setdefault(variable, value) != value:
            return False
    stack: list[tuple[int, dict[str, str]]] = [(0, start)]
    order = sorted(body, key=lambda edge: len(facts.get(edge[0], ())))
    while stack:
        at, bound = stack.pop()
        if at == len(order):
            return True
        label, names = order[at]
        for values in facts.get(label, ()):
            further = dict(bound)
            if all(
                further.setdefault(name, value) == value
                for name, value in zip(names, values, strict=True)
            ):
                stack.append((at + 1, further))
    return False


def _edge(item: BodyItem, kind: str = "") -> Edge:
    """Return an item's text without variables, and its variables; each `_` is a new one."""
    if not isinstance(item, Atom):
        return item_edge(item)
    texts: list[str] = []
    names: list[str] = []
    for each in item.arguments:
        is_wildcard = isinstance(each, Wildcard)
        own = [variable.name for variable in term_variables(each)]
        bare = Variable("·") if is_wildcard else substitute(each, dict.fromkeys(own, Variable("·")))
        texts.append(print_term(bare))
        names += [f"_•{next(_numbers)}"] if is_wildcard else own
    return f"{kind}{item.sign}{item.relation}({', '.join(texts)})", tuple(names)
