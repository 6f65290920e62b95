r"""Lambdas: each is an argument that a functor takes, with as many parameters as it is given."""

from collections.abc import Iterator

from corollary.analysis.phrases import term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import NUMBER_SEPARATOR, written_name
from corollary.analysis.traverse import clause_terms
from corollary.core.functors.catalog import signature_of
from corollary.core.functors.lambdas import SIGN, is_lambda, is_parameter, parameters_of
from corollary.core.functors.spec import FunctorSpec
from corollary.core.logic import Functor, Term, subterms
from corollary.errors import Diagnostic

CODE = "C0260"


def lambdas(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the lambdas and parameters that mean nothing."""
    for clause in resolved.clauses:
        for whole, _ in clause_terms(clause):
            if is_lambda(whole):
                yield _misplaced(whole)
            for term in subterms(whole):
                if is_parameter(term) and NUMBER_SEPARATOR not in term.name:
                    message = f"`{term.name}` is a parameter of no lambda around it."
                    note = f"write `{term.name} -> …`; an aggregate is outside of all lambdas"
                    yield Diagnostic(CODE, message, term.span, note)
                elif isinstance(term, Functor):
                    signature = signature_of(term)
                    for at, argument in enumerate(term.arguments):
                        yield from _argument(term, signature, at, argument)


def _argument(
    term: Functor, signature: FunctorSpec | None, at: int, argument: Term
) -> Iterator[Diagnostic]:
    is_known = signature is not None and signature.accepts(len(term.arguments))
    taken = signature.lambda_at(at) if signature is not None and is_known else ()
    if not is_lambda(argument):
        if taken:
            message = f"`{term_text(argument)}` is no lambda, and `{term.name}` takes one here."
            yield Diagnostic(CODE, message, argument.span, _note(taken))
        return
    if not taken:
        if is_known or signature is None:
            yield _misplaced(argument)
        return
    names = parameters_of(argument.name)
    least = sum(not each.endswith("?") for each in taken)
    if not least <= len(names) <= len(taken) or len(set(map(written_name, names))) < len(names):
        given = f"{least} or {len(taken)}" if least < len(taken) else str(least)
        word = "parameter" if given == "1" else "parameters"
        message = f"A lambda of `{term.name}` has {given} {word} of different names."
        yield Diagnostic(CODE, message, argument.span, _note(taken))


def _misplaced(term: Functor) -> Diagnostic:
    message = "A lambda stands here, where a value is needed."
    note = "lambdas are arguments of `transform`, `filter`, `exists`, `reduce` and the like"
    return Diagnostic(CODE, message, term.span, note)


def _note(taken: tuple[str, ...]) -> str:
    names = [f"{SIGN}{name}" for each, name in zip(taken, "xyz", strict=False) if "?" not in each]
    return f"write it as in `{' '.join(names)} -> …`"
