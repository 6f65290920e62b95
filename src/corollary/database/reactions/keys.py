"""Keys and functional dependencies of base relations, enforced at every commit."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from corollary.core.arrow import DependencyCheck, to_python
from corollary.core.engine import Engine, Limits
from corollary.core.program import NormalProgram, Relation
from corollary.core.recorder import CountingRecorder
from corollary.core.states import State
from corollary.core.values import format_row
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import LoadedProgram, ResolvedDependency
from corollary.database.program.parts import (
    MANUAL_PART,
    Row,
    describe_parts,
    find_asserted,
    working_copy,
)
from corollary.errors import WHY_HINT, ConstraintError, Diagnostic
from corollary.maintain.base_plans import plan_key_matches

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGE_VIOLATIONS = 20
"""The maximum number of violations in a message."""

LOOKUP_MAX_SHARE = 4
"""Added tuples are looked up one by one unless they are more than one in this many."""


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
    before: LoadedProgram | None,
    after: LoadedProgram,
    limits: Limits,
    late: Collection[str] = (),
) -> None:
    """Refuse a change that violates a key or functional dependency.

    Only tuples that agree with added ones are checked; all tuples if the dependency is new, or if
    many are added.

    Args:
        engine: of the relations.
        before: the program whose dependencies hold in OLD; None if nothing is known to hold.
        after: the program whose dependencies have to hold in NEW.
        limits: of the work.
        late: the relations that are not checked yet.

    Raises:
        ConstraintError: with the tuples that contradict each other.
    """
    findings: list[Diagnostic] = []
    for found, count in contradictions(engine, before, after, limits, late):
        rows = [row for each in found for row in each.rows]
        asserted = find_asserted(engine, after.normal, found[0].relation.name, rows, limits)
        asserted.pop(MANUAL_PART, None)
        findings += (_finding(each, asserted) for each in found)
        if count > len(found):
            more = f"and {count - len(found)} more of `{found[0].relation.name}`"
            findings.append(Diagnostic("C0937", more, found[0].dependency.span))
    if findings:
        raise ConstraintError(findings)


def contradictions(
    engine: Engine,
    before: LoadedProgram | None,
    after: LoadedProgram,
    limits: Limits,
    late: Collection[str] = (),
) -> Iterator[tuple[list[Contradiction], int]]:
    """Yield the first tuples that violate each key or functional dependency, and how many pairs do.

    The arguments are those of `check_keys`.
    """
    normal, dependencies = after.normal, after.dependencies
    known = frozenset[ResolvedDependency]() if before is None else before.known_dependencies
    names = engine.changed() & dependencies.keys() if before is after else dependencies
    for name, each in ((at, each) for at in names for each in dependencies[at]):
        if each.relation in late:
            continue
        added = engine.size(name, State.ADDED)
        check = DependencyCheck(each.determinants, each.dependents, MESSAGE_VIOLATIONS)
        if each not in known or added * LOOKUP_MAX_SHARE > engine.size(name):
            violated = engine.violations(name, check)
        elif added:
            violated = engine.clashes(name, check) or check.violations(
                _touched(engine, normal, name, each.determinants, limits)
            )
        else:
            continue
        if not violated.count:
            continue
        relation = normal.relations[each.relation]
        sides = (
            to_python(side.select(range(relation.arity)))  # without the counts of a bag
            for side in (violated.ones, violated.others)
        )
        yield (
            [Contradiction(each, relation, pair) for pair in zip(*sides, strict=True)],
            violated.count,
        )


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
        (format_row(row, relation.types), [part for part, held in asserted.items() if row in held])
        for row in found.rows
    )
    (one, _), (other, _) = sides
    noun = "rows" if each.span is not None and each.span.is_sql else "tuples"
    cure = "delete one of them in the same transaction"
    if any(parts for _, parts in sides):
        cure = ", or ".join(
            f"correct {row} in {describe_parts(parts, ' and ')}" if parts else f"do without {row}"
            for row, parts in sides
        )
    return Diagnostic(
        "C0937",
        f"`{relation.name}` would hold two {noun} with {what}: {one} and {other}.",
        each.span,
        f"{cure}; nothing was changed{WHY_HINT}says where both are from",
    )
