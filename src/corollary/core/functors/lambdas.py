r"""Lambdas: `\x \n -> \x + \n`, a function among the arguments of a functor of arrays.

A lambda is a functor whose only argument is its body, and a parameter is one without arguments;
both are named after the parameters, which keep their backslash: no variable can be meant. So every
pass reads the body as it reads other terms, and outer variables stand in it as anywhere. Only type
inference and the evaluator bind parameters, each to the elements of an array.

>>> parameters_of(lambda_of(("x", "n"), parameter("x")).name)
('x', 'n')
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeGuard

from corollary.core.functors.spec import ANY, FunctorSpec, Nullness, Word
from corollary.core.logic import Functor, Term, subterms
from corollary.source import Span

SIGN = "\\"
_BETWEEN = "\x1e"
"""Separates the names of parameters in that of a lambda."""

LAMBDA = FunctorSpec(
    SIGN, (ANY,), is_like_first=True, nullness=Nullness.CHOICE, operands=1, word=Word.CLOSED
)
PARAMETER = FunctorSpec(SIGN, (), nullness=Nullness.ALWAYS, word=Word.CLOSED)


def lambda_name(names: Iterable[str]) -> str:
    """Return the name of the functor that a lambda with some parameters is, or a parameter."""
    return SIGN + _BETWEEN.join(names)


def lambda_of(names: Iterable[str], body: Term, span: Span | None = None) -> Functor:
    """Return a lambda."""
    return Functor(lambda_name(names), (body,), span=span)


def parameter(name: str, span: Span | None = None) -> Functor:
    """Return a parameter, as it stands in the body of its lambda."""
    return Functor(lambda_name((name,)), (), span=span)


def is_lambda(term: object) -> TypeGuard[Functor]:
    """Whether a term is a lambda."""
    return isinstance(term, Functor) and term.name.startswith(SIGN) and bool(term.arguments)


def is_parameter(term: object) -> TypeGuard[Functor]:
    """Whether a term is a parameter."""
    return isinstance(term, Functor) and term.name.startswith(SIGN) and not term.arguments


def parameters_of(name: str) -> tuple[str, ...]:
    """Return the names of parameters, given that of the functor that a lambda or parameter is."""
    return tuple(name.removeprefix(SIGN).split(_BETWEEN))


def has_lambda(term: Term) -> bool:
    """Whether a lambda is an argument of a term itself."""
    return isinstance(term, Functor) and any(map(is_lambda, term.arguments))


def has_parameter(term: Term) -> bool:
    """Whether a parameter stands in a term, so that it belongs to the body of a lambda."""
    return any(map(is_parameter, subterms(term)))


def with_names(functor: Functor, change: Callable[[str], str]) -> Functor:
    """Return a lambda, but for its body, or a parameter with other names of parameters."""
    return replace(functor, name=lambda_name(map(change, parameters_of(functor.name))))
