"""Types of all terms and columns, and what is wrong with them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from corollary.analysis.annotate import annotate
from corollary.analysis.infer import Inference, infer, type_of
from corollary.analysis.mismatch import span_of
from corollary.analysis.nulls import Nullability, nullable_columns
from corollary.analysis.scales import scales
from corollary.analysis.survey import Survey
from corollary.analysis.traverse import readings
from corollary.analysis.wording import places, text_of
from corollary.core.rules import Atom, Clause
from corollary.core.terms import Constant, Functor, Variable, Wildcard
from corollary.core.types import Type
from corollary.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class Typing:
    """Clauses with types, the types of the relations' columns, and what was found wrong."""

    clauses: tuple[Clause, ...]
    columns: dict[str, tuple[Type | None, ...]]
    findings: tuple[Diagnostic, ...]


def types(survey: Survey) -> Typing:
    """Return the types of a program."""
    inference = infer(survey)
    scales(inference)
    findings = inference.findings
    nullability = nullable_columns(survey)
    clauses = tuple(annotate(inference, nullability, findings))
    for clause in clauses:
        for head in clause.heads:
            findings += _nulls_in(survey, head, nullability)
    if any(constant.value is None for constant, _ in inference.constants):
        for clause in clauses:
            findings += _null_literals(survey, clause, nullability)
    columns = {
        name: shape.types if shape.declaration else _inferred(inference, name, nullability)
        for name, shape in survey.shapes.items()
    }
    return Typing(clauses, columns, tuple(findings))


def _inferred(inference: Inference, name: str, nullability: Nullability) -> tuple[Type | None, ...]:
    nodes = inference.columns.get(name, [])
    found = [type_of(inference.unifier, node) for node in nodes]
    return tuple(
        type_.with_null(loose) if type_ else None
        for type_, loose in zip(found, nullability[name], strict=True)
    )


def _null_literals(
    survey: Survey, clause: Clause, nullability: Nullability
) -> Iterator[Diagnostic]:
    """Yield the literals `null` that a body asks for in columns without null."""
    for reading in readings(clause):
        atom = reading.atom
        if any(isinstance(term, Constant) and term.value is None for term in atom.arguments):
            literals = tuple(
                term if isinstance(term, Constant) else Wildcard() for term in atom.arguments
            )
            yield from _nulls_in(survey, replace(atom, arguments=literals), nullability)


def _nulls_in(survey: Survey, atom: Atom, nullability: Nullability) -> Iterator[Diagnostic]:
    """Yield the arguments that may be null where the column is not nullable."""
    shape = survey.shape(atom)
    if shape is None:
        return
    for position, term in enumerate(atom.arguments):
        if nullability[shape.name][position] or shape.types[position] is None:
            continue
        what = "may be null"
        match term:
            case Constant(value=None):
                what = "is null"
                cure = f"declare it nullable: `{shape.columns[position]}: {shape.types[position]}?`"
            case (Variable(type=Type(nullable=True))) | Functor(type=Type(nullable=True)):
                cure = "test it, as in `x = x`, or declare the column nullable with `?`"
            case _:
                continue
        declared = shape.declaration.columns[position].span if shape.declaration else None
        yield Diagnostic(
            "C0307",
            f"`{text_of(term)}` {what}, but column `{shape.columns[position]}` "
            f"of `{shape.name}` is not nullable.",
            span_of(term),
            cure,
            places((declared, f"`{shape.columns[position]}` is declared here")),
        )
