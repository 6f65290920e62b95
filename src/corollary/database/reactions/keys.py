"""Keys and functional dependencies of base relations, enforced at every commit."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from corollary.core.arrow import DependencyCheck, to_python
from corollary.core.engine import Engine, Limits
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.values import format_row
from corollary.database.program.parts import (
    MANUAL_PART,
    Row,
    describe_parts,
    find_asserted,
    working_copy,
)
from corollary.errors import WHY_HINT, ConstraintError, Diagnostic
from corollary.maintain.base_plans import plan_key_matches
from corollary.source import Span

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGE_VIOLATIONS = 20
"""The maximum number of violations in a message."""

LOOKUP_MAX_SHARE = 4
"""Added tuples are looked up one by one unless they are more than one in this many."""


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


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two tuples of a base relation that violate a key or a functional dependency.

    Attributes:
        relation: of the tuples, as users know it.
        rows: the two tuples.
    """

    dependency: ResolvedDependency
    relation: Relation
    rows: tuple[Row, Row]


def check_keys(
    engine: Engine,
    before: Collection[ResolvedDependency],
    program: Program,
    normal: NormalProgram,
    limits: Limits,
) -> None:
    """Refuse a change that violates a key or functional dependency.

    Only tuples that agree with added ones are checked; all tuples if the dependency is new, or if
    many are added.

    Raises:
        ConstraintError: with the tuples that contradict each other.
    """
    findings: list[Diagnostic] = []
    for found, count in contradictions(engine, before, program, normal, limits):
        rows = [row for each in found for row in each.rows]
        asserted = find_asserted(engine, normal, found[0].relation.name, rows, limits)
        asserted.pop(MANUAL_PART, None)
        findings += (_finding(each, asserted) for each in found)
        if count > len(found):
            more = f"and {count - len(found)} more of `{found[0].relation.name}`"
            findings.append(Diagnostic("C0937", more, found[0].dependency.span))
    if findings:
        raise ConstraintError(findings)


def contradictions(
    engine: Engine,
    before: Collection[ResolvedDependency],
    program: Program,
    normal: NormalProgram,
    limits: Limits,
) -> Iterator[tuple[list[Contradiction], int]]:
    """Yield the first tuples that violate each key or functional dependency, and how many pairs do.

    The arguments are those of `check_keys`.
    """
    for each in resolve_dependencies(program, normal):
        name = normal.bases.get(each.relation, each.relation)
        if normal.relations[name].is_derived:
            continue
        added = engine.size(name, State.ADDED)
        check = DependencyCheck(each.determinants, each.dependents, MESSAGE_VIOLATIONS)
        if each not in before or added * LOOKUP_MAX_SHARE > engine.size(name):
            violated = engine.violations(name, check)
        elif added:
            violated = engine.clashes(name, check) or check.violations(
                _touched(engine, normal, name, each.determinants, limits)
            )
        else:
            continue
        relation = normal.relations[each.relation]
        sides = (
            to_python(side.select(range(relation.arity)))  # without the counts of a bag
            for side in (violated.ones, violated.others)
        )
        found = [Contradiction(each, relation, pair) for pair in zip(*sides, strict=True)]
        if found:
            yield found, violated.count


def _touched(
    engine: Engine, normal: NormalProgram, name: str, determinants: Sequence[int], limits: Limits
) -> "pa.Table":
    into = working_copy(normal.relations[name], "touched")
    engine.declare({into.name: into})
    try:
        engine.run(
            plan_key_matches(normal, name, determinants, into.name), CountingRecorder(), limits
        )
        return engine.read(into.name)
    finally:
        engine.drop([into.name])


def _finding(found: Contradiction, asserted: Mapping[str, Sequence[Row]]) -> Diagnostic:
    """Return the message; a tuple that a source or the text asserts can only be corrected there."""
    each, relation = found.dependency, found.relation
    named = ", ".join(relation.columns[at] for at in each.determinants)
    depend = ", ".join(relation.columns[at] for at in each.dependents)
    what = f"the key ({named})" if each.is_key else f"the same {named} and another {depend}"
    sides = sorted(
        (
            format_row(row, relation.types),
            [part for part, held in asserted.items() if row in held],
        )
        for row in found.rows
    )
    (one, _), (other, _) = sides
    cure = "delete one of them in the same transaction"
    if any(parts for _, parts in sides):
        cure = ", or ".join(
            f"correct {row} in {describe_parts(parts, ' and ')}" if parts else f"do without {row}"
            for row, parts in sides
        )
    return Diagnostic(
        "C0937",
        f"`{relation.name}` would hold two tuples with {what}: {one} and {other}.",
        each.span,
        f"{cure}; nothing was changed{WHY_HINT}says where both are from",
    )
