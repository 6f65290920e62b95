"""Functors that a program declares: once each, pure, and fitting the functions registered."""

from collections.abc import Iterator

from corollary.analysis.phrases import related_spans
from corollary.analysis.resolution import ResolvedProgram, resolve_functors
from corollary.core.program import FunctorDeclaration
from corollary.core.types import Type
from corollary.core.user_functors.registration import annotated_types, parameter_count
from corollary.core.user_functors.user_functor import SIGN, UserFunctor
from corollary.errors import Diagnostic

STATES = ("old", "new")
"""Words after `@` that name states of relations."""


def functors(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what is wrong with the functors that a program declares."""
    seen: dict[str, FunctorDeclaration] = {}
    found = resolve_functors(resolved.program.functors, resolved.types)
    for declaration in resolved.program.functors:
        first = seen.setdefault(declaration.name, declaration)
        if first is not declaration:
            yield Diagnostic(
                "C0256",
                f"The functor `{declaration.name}` is declared twice.",
                declaration.span,
                "remove one of the declarations",
                related_spans((first.span, "first declared here")),
            )
        elif declaration.name in STATES or "." in declaration.name:
            yield Diagnostic(
                "C0256",
                f"A functor cannot be named `{declaration.name}`.",
                declaration.span,
                "choose another name: a plain word, and not `old` or `new`, which follow `@` after "
                "a relation",
            )
        yield from _purity(declaration)
        functor = found.get(f"{SIGN}{declaration.name}")
        if functor is not None and first is declaration:
            yield from _function(declaration, functor)


def _purity(declaration: FunctorDeclaration) -> Iterator[Diagnostic]:
    if declaration.is_stateful:
        yield Diagnostic(
            "C0257",
            f"The functor `{declaration.name}` is stateful: maintenance computes values again, and "
            "needs functors that always give the same one.",
            declaration.span,
            "leave out `stateful` if its results depend on its arguments alone",
        )
    for parameter in declaration.parameters:
        if parameter.type.nullable:
            yield Diagnostic(
                "C0258",
                f"A parameter of `{declaration.name}` is nullable: no functor is called with null, "
                "its value is null there.",
                parameter.span,
                "leave out the `?`; the result may have one",
            )


def _function(declaration: FunctorDeclaration, functor: UserFunctor) -> Iterator[Diagnostic]:
    """Compare the declaration with the Python function that is registered for it."""
    function = functor.function
    if function is None:
        return
    place = ".".join(function.place)
    count = parameter_count(function)
    needed = len(functor.parameters)
    if count is not None and (needed < count[0] or (count[1] is not None and needed > count[1])):
        yield Diagnostic(
            "C0259",
            f"The functor `{functor.name}` has {needed} parameters, but the function `{place}` "
            f"takes {count[0] if count[0] == count[1] else f'{count[0]} or more'}.",
            declaration.span,
            "declare the functor with the parameters of the function",
        )
        return
    if function.is_vectorised:
        return
    parameters, result = annotated_types(function)
    for type_, annotated in (
        *zip(functor.parameters, parameters, strict=False),
        (functor.result, result),
    ):
        if not _agrees(type_, annotated):
            usual = type_.spec.python[0].__name__
            written = getattr(annotated, "__name__", str(annotated))
            yield Diagnostic(
                "C0259",
                f"The functor `{functor.name}` has a `{type_}`, which is `{usual}` in Python, but "
                f"the function `{place}` has `{written}` there.",
                declaration.span,
                "change the declaration or the annotation, so that they agree",
            )


def _agrees(type_: Type, annotated: object) -> bool:
    """Whether an annotation allows a type; of annotations that are not classes, all do."""
    if not isinstance(annotated, type) or annotated is object:
        return True
    return annotated in type_.spec.python
