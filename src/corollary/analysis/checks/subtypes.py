"""Warnings about variables in columns of unrelated subtypes."""

from collections.abc import Iterator, Mapping

from corollary.analysis.phrases import related_spans
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.scopes import written_name
from corollary.core.graph import reachable
from corollary.core.logic import Atom, Variable
from corollary.core.program import Column, Program
from corollary.errors import Diagnostic, Severity


def subtypes(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield a warning for each variable of two subtypes neither of which is based on the other."""
    if not resolved.program.types:
        return
    above = _ancestors(resolved.program)
    for number, clause in enumerate(resolved.clauses):
        first: dict[str, tuple[Variable, Atom, Column]] = {}
        seen: set[str] = set()
        atoms = [use.atom for use in resolved.uses[number]]
        for atom in (*atoms, *clause.heads):
            for variable, column in _columns(resolved, atom):
                name = variable.name
                known = first.setdefault(name, (variable, atom, column))
                one, other = known[2].type.name, column.type.name
                if one in above.get(other, ()):
                    first[name] = (variable, atom, column)
                elif other != one and other not in above.get(one, ()) and name not in seen:
                    seen.add(name)
                    yield _warning(known, (variable, atom, column))


def _columns(resolved: ResolvedProgram, atom: Atom) -> Iterator[tuple[Variable, Column]]:
    schema = resolved.schema_of(atom)
    if schema is not None and schema.declaration is not None:
        for term, column in zip(atom.arguments, schema.declaration.columns, strict=True):
            type_ = resolved.types.get(column.type.name)
            # Records of different types are an error, which type inference reports.
            if isinstance(term, Variable) and type_ is not None and type_.record is None:
                yield term, column


def _ancestors(program: Program) -> Mapping[str, set[str]]:
    """Return, for each type, the types that contain it: its bases, and unions it is part of."""
    direct: dict[str, set[str]] = {}
    for declaration in program.types:
        for base in declaration.bases:
            if declaration.is_subtype or len(declaration.bases) == 1:
                direct.setdefault(declaration.name, set()).add(base.name)
            if not declaration.is_subtype:
                direct.setdefault(base.name, set()).add(declaration.name)
    return {
        name: set(reachable(below, lambda each: direct.get(each, ())))
        for name, below in direct.items()
    }


def _warning(
    one: tuple[Variable, Atom, Column], other: tuple[Variable, Atom, Column]
) -> Diagnostic:
    variable, _, column = other
    earlier, first_atom, first_column = one
    return Diagnostic(
        "C0705",
        f"`{written_name(variable.name)}` is a `{first_column.type.name}` and "
        f"a `{column.type.name}`, which are unrelated types.",
        variable.span,
        "if this is meant, let one of the types be based on the other",
        related_spans((earlier.span, f"column `{first_column.name}` of `{first_atom.relation}`")),
        Severity.WARNING,
    )
