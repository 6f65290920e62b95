"""The keys and functional dependencies that a program declares."""

from collections.abc import Iterator
from dataclasses import field

from corollary.core.program import NormalProgram, Program
from corollary.data_class import dataclass
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class ResolvedDependency:
    """Tuples that agree in the determinants agree in the dependents."""

    relation: str
    determinants: tuple[int, ...]
    dependents: tuple[int, ...]
    is_key: bool
    span: Span | None = field(compare=False)


def resolve_dependencies(program: Program, normal: NormalProgram) -> Iterator[ResolvedDependency]:
    """Yield the keys and `.fd`s of a program, with columns by position."""
    for declaration in program.declarations:
        relation = normal.relations.get(declaration.name)
        if declaration.key and relation is not None:
            key = tuple(relation.columns.index(name) for name in declaration.key)
            rest = tuple(at for at in range(relation.arity) if at not in key)
            yield ResolvedDependency(relation.name, key, rest, True, declaration.span)
    for each in program.dependencies:
        relation = normal.relations.get(each.relation)
        if relation is not None:
            key, rest = (
                tuple(relation.columns.index(name) for name in names)
                for names in (each.determinants, each.dependents)
            )
            rest = tuple(at for at in rest if at not in key)  # those agree anyway
            if rest:
                yield ResolvedDependency(relation.name, key, rest, False, each.span)
