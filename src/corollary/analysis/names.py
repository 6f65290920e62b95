"""Names of relations and functors: known, and used with as many arguments as they have."""

from collections.abc import Iterator

from corollary.analysis.survey import Survey
from corollary.analysis.traverse import Place, parts, terms
from corollary.analysis.wording import places, suggestion
from corollary.core.functors import FUNCTORS, FunctorSignature
from corollary.core.rules import Atom, Clause
from corollary.core.terms import Functor
from corollary.errors import Diagnostic
from corollary.source import Span


def names(survey: Survey) -> Iterator[Diagnostic]:
    """Yield the names that are not known, once each, and the uses that do not fit."""
    unknown: set[str] = set()
    for number, clause in enumerate(survey.clauses):
        atoms = [*clause.heads, *(reading.atom for reading in survey.readings[number])]
        for atom in atoms:
            if atom.relation in survey.shapes:
                yield from _arity(survey, atom)
            elif atom.relation not in unknown:
                unknown.add(atom.relation)
                yield _unknown(survey, atom.relation, atom.span, atom in clause.heads)
        yield from _functors(clause)
    program = survey.program
    users = [(user.relation, user.span) for user in program.dependencies]
    users += [(user.relation, user.span) for user in program.directives]
    users += [(user.relation, user.span) for user in program.reactions]
    for name, span in users:
        if name not in survey.shapes and name not in unknown:
            unknown.add(name)
            yield _unknown(survey, name, span, False)


def _unknown(survey: Survey, name: str, span: Span | None, is_head: bool) -> Diagnostic:
    declare = f"declare it: `.decl {name}(…)`"
    near = suggestion(name, survey.shapes)
    cure = declare if is_head and not near else near or declare
    return Diagnostic("C0201", f"There is no relation `{name}`.", span, cure)


def _arity(survey: Survey, atom: Atom) -> Iterator[Diagnostic]:
    shape = survey.shapes[atom.relation]
    has, given = len(shape.columns), len(atom.arguments)
    if has != given:
        columns = ", ".join(shape.columns)
        yield Diagnostic(
            "C0202",
            f"Relation `{atom.relation}` has {_count(has, 'column')}, but {given} "
            f"{'is' if given == 1 else 'are'} given.",
            atom.span,
            f"write `{atom.relation}({columns})`" + (", with `_` for the rest" if columns else ""),
            places((shape.span, "declared here" if shape.declaration else "first rule")),
        )


def _functors(clause: Clause) -> Iterator[Diagnostic]:
    for whole, place in terms(clause):
        for term in parts(whole):
            if not isinstance(term, Functor):
                continue
            if term.name == "range" and (term is not whole or place is not Place.EQUATED):
                yield Diagnostic(
                    "C0204",
                    "`range` makes several values and stands only beside `=`, with a variable.",
                    term.span,
                    "name its values first: `x = range(0, 10)`",
                )
            signature = FUNCTORS.get(term.name)
            if signature is None:
                yield Diagnostic(
                    "C0203",
                    f"There is no functor `{term.name}`.",
                    term.span,
                    suggestion(term.name, FUNCTORS) or "user-defined functors are not supported",
                )
            elif not signature.accepts(len(term.arguments)):
                most = signature.most
                if most is None:
                    takes = f"at least {_count(signature.least, 'argument')}"
                elif most == signature.least:
                    takes = _count(most, "argument")
                else:
                    takes = f"{signature.least} to {most} arguments"
                given = len(term.arguments)
                yield Diagnostic(
                    "C0203",
                    f"`{term.name}` takes {takes}, but {given} "
                    f"{'is' if given == 1 else 'are'} given.",
                    term.span,
                    f"write `{_form(signature)}`",
                )


def _form(signature: FunctorSignature) -> str:
    """Return how a functor is applied: `substr(symbol, number, number)`."""
    names = [
        str(*kinds) if len(kinds) == 1 else letter
        for kinds, letter in zip(signature.parameters, "xyz", strict=False)
    ]
    return f"{signature.name}({', '.join(names)}{', …' if signature.is_variadic else ''})"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
