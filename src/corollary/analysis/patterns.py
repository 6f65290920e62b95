"""What constants tell: which tuples a head may make, and which of them a body may meet.

| word | here |
|---|---|
| pattern | for each column the constant that stands there; None for any value |
| way | a conjunction that a clause's body multiplies out to |
| binding | the variables of a way that are known to be constants |

`p(x, "a") :- q(x), x = 1.` makes tuples of the pattern `(1, "a")` only, and a body with `p(x, _),
x > 3` does not meet them. What constants do not decide is taken to be possible, and so is a match
of patterns of different lengths: that is an error of which others tell.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne

from corollary.analysis.traverse import Item, conjunctions, count_conjunctions
from corollary.core.rules import Atom, Clause, Comparison, walk
from corollary.core.terms import Constant, Term, Value, Variable

Pattern = tuple[Constant | None, ...]
Binding = Mapping[str, Constant]
Way = tuple[Item, ...]

_COMPARED = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_MOST_WAYS = 256


def ways(clause: Clause) -> list[Way]:
    """Return the conjunctions of a body; where there are too many, one without comparisons."""
    if count_conjunctions(clause.body) <= _MOST_WAYS:
        return list(conjunctions(clause.body))
    return [tuple(item for item in walk(clause.body) if not isinstance(item, Comparison))]


def patterns(head: Atom, clause: Clause) -> Iterator[Pattern]:
    """Yield the constants of a head for each way in which its body may hold."""
    for way in ways(clause):
        binding = bound(way, {})
        if binding is not None:
            yield pattern_of(head, binding)


def may_meet(one: tuple[Atom, Clause], other: tuple[Atom, Clause]) -> bool:
    """Whether the heads of two clauses may be one tuple."""
    return _may_be(one, other) and _may_be(other, one)


def _may_be(one: tuple[Atom, Clause], other: tuple[Atom, Clause]) -> bool:
    head, clause = other
    return any(
        bound(way, matched(head, pattern)) is not None
        for pattern in patterns(*one)
        for way in ways(clause)
    )


def may_agree(one: Pattern, other: Pattern) -> bool:
    """Whether some tuple has both patterns."""
    return all(
        left is None or right is None or holds("=", left, right) is not False
        for left, right in zip(one, other, strict=False)
    )


def covers(general: Pattern, special: Pattern) -> bool:
    """Whether one pattern has all tuples of another one."""
    return all(one is None or one == other for one, other in zip(general, special, strict=False))


def matched(atom: Atom, pattern: Pattern) -> dict[str, Constant] | None:
    """Return what a tuple of a pattern says of an atom's variables; None if it does not match."""
    found: dict[str, Constant] = {}
    if len(atom.arguments) != len(pattern):
        return found
    for term, constant in zip(atom.arguments, pattern, strict=True):
        if constant is None:
            continue
        known = found.get(term.name) if isinstance(term, Variable) else term
        if isinstance(known, Constant) and holds("=", known, constant) is False:
            return None
        if isinstance(term, Variable):
            found[term.name] = constant
    return found


def bound(way: Way, binding: Binding | None) -> dict[str, Constant] | None:
    """Return the variables of a way that are constants; None if it cannot hold."""
    if binding is None:
        return None
    found = dict(binding)
    comparisons = [item for item in way if isinstance(item, Comparison)]
    for _ in comparisons:
        for item in comparisons:
            if item.operator != "=":
                continue
            for one, other in ((item.left, item.right), (item.right, item.left)):
                value = _constant(other, found)
                if isinstance(one, Variable) and value is not None:
                    found.setdefault(one.name, value)
    for item in comparisons:
        left, right = _constant(item.left, found), _constant(item.right, found)
        if left and right and holds(item.operator, left, right) is False:
            return None
    return found


def _constant(term: Term, binding: Binding) -> Constant | None:
    if isinstance(term, Constant):
        return term
    return binding.get(term.name) if isinstance(term, Variable) else None


def pattern_of(head: Atom, binding: Binding) -> Pattern:
    """Return the constants that stand in a head."""
    return tuple(_constant(term, binding) for term in head.arguments)


def holds(operator: str, one: Constant, other: Constant) -> bool | None:
    """Whether a comparison of two constants holds; None if it takes their types to know."""
    left, right = one.value, other.value
    if left is None or right is None:
        return left is right if operator == "=" else None
    if operator not in _COMPARED or _family(left) != _family(right):
        return None
    return bool(_COMPARED[operator](left, right))


def _family(value: Value) -> type:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal
    return type(value)
