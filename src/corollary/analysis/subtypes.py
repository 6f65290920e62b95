"""Warnings about variables that stand in columns of unrelated subtypes."""

from collections.abc import Iterator, Mapping

from corollary.analysis.scopes import plain
from corollary.analysis.survey import Survey
from corollary.analysis.wording import places
from corollary.core.program import Column, Program
from corollary.core.rules import Atom
from corollary.core.terms import Variable
from corollary.errors import Diagnostic, Severity


def subtypes(survey: Survey) -> Iterator[Diagnostic]:
    """Yield a warning for each variable of two subtypes of which none is the other's base."""
    if not survey.program.types:
        return
    above = _ancestors(survey.program)
    for number, clause in enumerate(survey.clauses):
        first: dict[str, tuple[Variable, Atom, Column]] = {}
        seen: set[str] = set()
        atoms = [reading.atom for reading in survey.readings[number]]
        for atom in (*atoms, *clause.heads):
            for variable, column in _columns(survey, atom):
                name = variable.name
                known = first.setdefault(name, (variable, atom, column))
                one, other = known[2].type.name, column.type.name
                if one in above.get(other, ()):
                    first[name] = (variable, atom, column)
                elif other != one and other not in above.get(one, ()) and name not in seen:
                    seen.add(name)
                    yield _warning(known, (variable, atom, column))


def _columns(survey: Survey, atom: Atom) -> Iterator[tuple[Variable, Column]]:
    shape = survey.shape(atom)
    if shape is not None and shape.declaration is not None:
        for term, column in zip(atom.arguments, shape.declaration.columns, strict=True):
            if isinstance(term, Variable) and column.type.name in survey.types:
                yield term, column


def _ancestors(program: Program) -> Mapping[str, set[str]]:
    """Return, for each type, the types that contain it: its bases, and unions it is part of."""
    above: dict[str, set[str]] = {}
    direct: dict[str, set[str]] = {}
    for declaration in program.types:
        for base in declaration.bases:
            if declaration.is_subtype or len(declaration.bases) == 1:
                direct.setdefault(declaration.name, set()).add(base.name)
            if not declaration.is_subtype:
                direct.setdefault(base.name, set()).add(declaration.name)
    for name in direct:
        found: set[str] = set()
        open_names = [name]
        while open_names:
            new = direct.get(open_names.pop(), set()) - found
            found |= new
            open_names += new
        above[name] = found
    return above


def _warning(
    one: tuple[Variable, Atom, Column], other: tuple[Variable, Atom, Column]
) -> Diagnostic:
    variable, _, column = other
    earlier, first_atom, first_column = one
    return Diagnostic(
        "C0705",
        f"`{plain(variable.name)}` is a `{first_column.type.name}` and a `{column.type.name}`, "
        "which are unrelated types.",
        variable.span,
        "if this is meant, let one of the types be based on the other",
        places((earlier.span, f"column `{first_column.name}` of `{first_atom.relation}`")),
        Severity.WARNING,
    )
