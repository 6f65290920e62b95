"""Patterns of constants: which tuples a head may make, and whether a body may match them.

| word | here |
|---|---|
| pattern | for each column its constant; None for any value |
| conjunction | one of those that a clause's body multiplies out to |
| binding | the variables of a conjunction that are known to be constants |

`p(x, "a") :- q(x), x = 1.` makes tuples of the pattern `(1, "a")` only, and a body with `p(x, _),
x > 3` does not match them. What constants do not decide is taken to be possible, and so is a match
of patterns of different lengths: that is an error which `names` reports.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from corollary.analysis.traverse import Item, conjunctions, count_conjunctions
from corollary.core import logic

Pattern = tuple[logic.Constant | None, ...]
Binding = Mapping[str, logic.Constant]
BodyConjunction = tuple[Item, ...]

_CONJUNCTIONS_MAX = 256


def body_conjunctions(clause: logic.Clause) -> list[BodyConjunction]:
    """Return the conjunctions of a body; if there are too many, one without comparisons.

    Fewer conditions only make more seem possible.
    """
    if count_conjunctions(clause.body) <= _CONJUNCTIONS_MAX:
        return list(conjunctions(clause.body))
    return [
        tuple(
            item
            for item in logic.literals_of(clause.body)
            if not isinstance(item, logic.Comparison)
        )
    ]


def patterns(head: logic.Atom, clause: logic.Clause) -> Iterator[Pattern]:
    """Yield the pattern of a head for each conjunction of its body that may hold."""
    for conjunction in body_conjunctions(clause):
        binding = bind_constants(conjunction, {})
        if binding is not None:
            yield pattern_of(head, binding)


def may_unify(one: tuple[logic.Atom, logic.Clause], other: tuple[logic.Atom, logic.Clause]) -> bool:
    """Whether the heads of two clauses may be one tuple."""
    return _may_match(one, other) and _may_match(other, one)


def _may_match(
    one: tuple[logic.Atom, logic.Clause], other: tuple[logic.Atom, logic.Clause]
) -> bool:
    head, clause = other
    return any(
        bind_constants(conjunction, match_atom(head, pattern)) is not None
        for pattern in patterns(*one)
        for conjunction in body_conjunctions(clause)
    )


def may_overlap(one: Pattern, other: Pattern) -> bool:
    """Whether some tuple has both patterns."""
    return all(
        left is None or right is None or compare_constants("=", left, right) is not False
        for left, right in zip(one, other, strict=False)
    )


def subsumes(general: Pattern, special: Pattern) -> bool:
    """Whether all tuples of one pattern are tuples of the other, more general one."""
    return all(one is None or one == other for one, other in zip(general, special, strict=False))


def match_atom(atom: logic.Atom, pattern: Pattern) -> dict[str, logic.Constant] | None:
    """Return the binding of an atom's variables to a pattern; None if they do not match."""
    found: dict[str, logic.Constant] = {}
    if len(atom.arguments) != len(pattern):
        return found
    for term, constant in zip(atom.arguments, pattern, strict=True):
        if constant is None:
            continue
        known = found.get(term.name) if isinstance(term, logic.Variable) else term
        if isinstance(known, logic.Constant) and compare_constants("=", known, constant) is False:
            return None
        if isinstance(term, logic.Variable):
            found[term.name] = constant
    return found


def bind_constants(
    conjunction: BodyConjunction, binding: Binding | None
) -> dict[str, logic.Constant] | None:
    """Extend a binding by what the equalities imply; None if the conjunction cannot hold."""
    if binding is None:
        return None
    found = dict(binding)
    comparisons = [item for item in conjunction if isinstance(item, logic.Comparison)]
    for _ in comparisons:  # a chain of equalities is no longer than their number
        for item in comparisons:
            if item.operator != "=":
                continue
            for one, other in ((item.left, item.right), (item.right, item.left)):
                value = _constant(other, found)
                if isinstance(one, logic.Variable) and value is not None:
                    found.setdefault(one.name, value)
    for item in comparisons:
        left, right = _constant(item.left, found), _constant(item.right, found)
        if left and right and compare_constants(item.operator, left, right) is False:
            return None
    return found


def _constant(term: logic.Term, binding: Binding) -> logic.Constant | None:
    if isinstance(term, logic.Constant):
        return term
    return binding.get(term.name) if isinstance(term, logic.Variable) else None


def pattern_of(head: logic.Atom, binding: Binding) -> Pattern:
    """Return the constants of a head, given a binding of its variables."""
    return tuple(_constant(term, binding) for term in head.arguments)


def compare_constants(operator: str, one: logic.Constant, other: logic.Constant) -> bool | None:
    """Whether a comparison of two constants holds; None if that depends on their types."""
    left, right = one.value, other.value
    if left is None or right is None:
        return left is right if operator == "=" else None
    if operator not in logic.COMPARATORS or _comparable_type(left) != _comparable_type(right):
        return None
    return bool(logic.COMPARATORS[operator](left, right))


def _comparable_type(value: logic.Value) -> type:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal
    return type(value)
