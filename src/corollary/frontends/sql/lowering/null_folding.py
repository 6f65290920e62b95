"""Terms in which `null` is written, without what follows from that.

Rules have no types of their own: that of a `null` is inferred from what stands beside it. So a
functor that is null where an argument is becomes `null`, and one that skips nulls loses them.
"""

from corollary.core.functors.catalog import signature_of
from corollary.core.functors.spec import Nullness
from corollary.core.logic import Comparison, Constant, Functor, Term, Truth

_NULL = Constant(None)


def fold_nulls(functor: Functor) -> Term:
    """Return a term of the same value; the arguments are folded already.

    >>> fold_nulls(Functor("+", (Constant(1), Constant(None))))
    Constant(value=None, type=None)
    >>> fold_nulls(Functor("coalesce", (Constant(None), Constant(1))))
    Constant(value=1, type=None)
    """
    arguments = functor.arguments
    if not any(map(_is_null, arguments)) and functor.name != "if":
        return functor
    match functor.name, arguments:
        case "is_null", _:
            return Constant(value=True)
        case "same", (one, other):
            return fold_nulls(Functor("is_null", (other if _is_null(one) else one,)))
        case "if", (Constant(value=condition), then, otherwise):
            return then if condition is True else otherwise
        case "if", (_, then, otherwise):
            return _NULL if _is_null(then) and _is_null(otherwise) else functor
        case "null_if", (one, _):
            return one
        case "coalesce" | "greatest" | "least", _:
            known = tuple(each for each in arguments if not _is_null(each))
            if len(known) < 2:
                return known[0] if known else _NULL
            return Functor(functor.name, known, functor.type)
        case "try", _:
            return _NULL
        case _:
            signature = signature_of(functor)
            is_strict = signature is not None and signature.nullness is Nullness.STRICT
            return _NULL if is_strict else functor


def fold_comparison(comparison: Comparison) -> Comparison | Truth:
    """Return a comparison, or its truth where nothing says of which type its sides are."""
    if _is_null(comparison.left) and _is_null(comparison.right):
        return Truth(value=comparison.operator == "is")
    return comparison


def _is_null(term: Term) -> bool:
    return isinstance(term, Constant) and term.value is None
