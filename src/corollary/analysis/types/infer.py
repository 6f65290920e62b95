"""Type inference: the types of all terms and columns, and what is wrong with them."""

from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.types.annotate import annotate
from corollary.analysis.types.constraints import TypeConstraints, collect_constraints
from corollary.analysis.types.nulls import Nullability, null_heads, null_literals, nullable_columns
from corollary.analysis.types.scales import scales
from corollary.core.logic import Clause
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class TypedProgram:
    """Clauses with types, the types of the relations' columns, and what was found wrong."""

    clauses: tuple[Clause, ...]
    columns: dict[str, tuple[Type | None, ...]]
    findings: tuple[Diagnostic, ...]


def infer_types(resolved: ResolvedProgram) -> TypedProgram:
    """Return the types of a program."""
    constraints = collect_constraints(resolved)
    scales(constraints)
    nullability = nullable_columns(resolved)
    clauses = tuple(annotate(constraints, nullability))
    findings = [*constraints.findings, *null_heads(resolved, clauses, nullability)]
    if any(constant.value is None for constant, _ in constraints.constants):
        findings += null_literals(resolved, clauses, nullability)
    columns = {
        name: schema.types if schema.declaration else _inferred(constraints, name, nullability)
        for name, schema in resolved.schemas.items()
    }
    return TypedProgram(clauses, columns, tuple(findings))


def _inferred(
    constraints: TypeConstraints, name: str, nullability: Nullability
) -> tuple[Type | None, ...]:
    """Return the column types of an event predicate without a declaration."""
    found = [constraints.unifier.type_of(node) for node in constraints.columns.get(name, [])]
    return tuple(
        type_.with_null(is_nullable) if type_ else None
        for type_, is_nullable in zip(found, nullability[name], strict=True)
    )
