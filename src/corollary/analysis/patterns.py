"""Records as patterns: which terms inside a record get their values from the record.

`[x, [_, y + 1]]` in an atom binds `x`; `y + 1` is a value that the field is compared with.
"""

from collections.abc import Iterator

from corollary.core import logic
from corollary.core.records.record_terms import is_record_term


def pattern_terms(term: logic.Term) -> Iterator[logic.Term]:
    """Yield a term, or, if it is a record, the innermost terms of it that are not records.

    >>> inner = logic.Functor("[]", (logic.Wildcard(), logic.Variable("y")))
    >>> list(pattern_terms(logic.Functor("[]", (logic.Variable("x"), inner))))
    [Variable(name='x', type=None), Wildcard(), Variable(name='y', type=None)]
    """
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, logic.Functor) and is_record_term(part):
            stack += reversed(part.arguments)
        else:
            yield part


def pattern_variables(atom: logic.Atom) -> Iterator[logic.Variable]:
    """Yield the variables that an atom of a body binds."""
    for argument in atom.arguments:
        for part in pattern_terms(argument):
            if isinstance(part, logic.Variable):
                yield part


def has_record(term: logic.Term) -> bool:
    """Whether a record is written somewhere in a term, aggregates not entered."""
    return any(is_record_term(part) for part in logic.subterms(term))


def equated_terms(left: logic.Term, right: logic.Term) -> Iterator[tuple[logic.Term, logic.Term]]:
    """Yield what is equal where two terms are: of two records of one branch, their fields.

    >>> x, y = logic.Variable("x"), logic.Variable("y")
    >>> [(a.name, b.name) for a, b in equated_terms(*(logic.Functor("[]", (z,)) for z in (x, y)))]
    [('x', 'y')]
    """
    stack = [(left, right)]
    while stack:
        one, other = stack.pop()
        if (
            isinstance(one, logic.Functor)
            and isinstance(other, logic.Functor)
            and is_record_term(one)
            and one.name == other.name
            and len(one.arguments) == len(other.arguments)
        ):
            stack += reversed(list(zip(one.arguments, other.arguments, strict=True)))
        else:
            yield one, other
