"""An `eqrel` relation is the reflexive, symmetric, transitive closure of its tuples."""

from collections.abc import Iterator

from corollary.core.origin import Origin
from corollary.core.program import Declaration
from corollary.core.rules import Literal, Rule
from corollary.core.terms import Variable, Wildcard
from corollary.core.types import Type


def equivalences(declaration: Declaration, types: tuple[Type, ...]) -> Iterator[Rule]:
    """Yield the three rules of an equivalence relation."""
    name = declaration.name
    origin = Origin(f".decl {name}(…) eqrel", declaration.span, ("equivalences",))
    x, y, z = (Variable(letter, types[0]) for letter in "xyz")

    def rule(head: tuple[Variable, Variable], *body: tuple[Variable, Variable | Wildcard]) -> Rule:
        return Rule(Literal(name, head), tuple(Literal(name, each) for each in body), (), origin)

    yield rule((x, x), (x, Wildcard()))
    yield rule((y, x), (x, y))
    yield rule((x, z), (x, y), (y, z))
