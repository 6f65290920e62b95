"""An `eqrel` relation is the reflexive, symmetric, transitive closure of its tuples.

What facts and rules give goes to a seed, and the closure is linear in it:

    same(x, x) :- same.seed(x, _).      same(x, z) :- same(x, y), same.seed(y, z).
    same(x, x) :- same.seed(_, x).      same(x, z) :- same(x, y), same.seed(z, y).
"""

from collections.abc import Iterator

from corollary.core.origin import Origin
from corollary.core.program import Declaration
from corollary.core.rules import Literal, Rule
from corollary.core.terms import Variable, Wildcard
from corollary.core.types import Type


def equivalences(declaration: Declaration, seed: str, types: tuple[Type, ...]) -> Iterator[Rule]:
    """Yield the rules that close a seed to an equivalence relation."""
    name = declaration.name
    origin = Origin(f".decl {name}(…) eqrel", declaration.span, ("equivalences",))
    x, y, z = (Variable(letter, types[0]) for letter in "xyz")
    anything = Wildcard()
    for member in (Literal(seed, (x, anything)), Literal(seed, (anything, x))):
        yield Rule(Literal(name, (x, x)), (member,), (), origin)
    for link in (Literal(seed, (y, z)), Literal(seed, (z, y))):
        yield Rule(Literal(name, (x, z)), (Literal(name, (x, y)), link), (), origin)
