"""Verifies advice by four checks.

| check | how |
|---|---|
| static | the rewriting, unfolded, and the original imply each other on canonical databases |
| random | both programs answer alike on small random databases |
| data | both answer alike on the real data |
| changes | after random inserts and deletes, every new view equals its recomputation |

Equivalence of two sets of clauses: each implies the other on canonical databases.

A clause is *frozen*: its variables become values, its body facts. If the other side derives the
frozen head from these facts, it implies the clause. Negated literals, comparisons and literals of
the clause's own recursion are facts of uninterpreted predicates. So the test is sound; for plain
Horn clauses it is exact.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, count
from typing import TYPE_CHECKING

from corollary.advisor.advice import Advice
from corollary.advisor.check.scratch_database import full_goal, open_scratch_database
from corollary.advisor.model.candidates import substitute, term_variables
from corollary.advisor.model.canonical import Edge, item_edge
from corollary.analysis.traverse import clause_terms
from corollary.core.arrow import to_python
from corollary.core.logic import (
    Atom,
    BodyItem,
    Clause,
    Constant,
    Term,
    Value,
    Variable,
    Wildcard,
    subterms,
)
from corollary.core.printer import print_term
from corollary.core.program import NormalProgram, Program, Relation
from corollary.core.types import Kind, Type
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.program.loaded_program import ResolvedDependency, resolve_dependencies
from corollary.database.upkeep.expected_contents import recompute
from corollary.errors import ConstraintError, CorollaryError
from corollary.warehouse.copies import difference

if TYPE_CHECKING:
    import pyarrow as pa

Facts = Mapping[str, Sequence[tuple[str, ...]]]


def is_equivalent(
    one: Sequence[Clause], other: Sequence[Clause], views: Mapping[str, Sequence[Clause]]
) -> bool:
    """Whether clauses are equivalent, once views are unfolded."""
    left, right = (
        [rule for each in side for rule in _unfold(each, views)] for side in (one, other)
    )
    return _implies(left, right) and _implies(right, left)


def _unfold(clause: Clause, views: Mapping[str, Sequence[Clause]]) -> Iterator[Clause]:
    """Yield a clause with the bodies of views in place of their atoms, one for each choice."""
    for at, item in enumerate(clause.body):
        if isinstance(item, Atom) and item.relation in views:
            for rule in views[item.relation]:
                body = _instance(rule, item)
                items = (*clause.body[:at], *body, *clause.body[at + 1 :])
                yield from _unfold(Clause(clause.heads, items), views)
            return
    yield clause


_numbers = count()


def _instance(rule: Clause, atom: Atom) -> tuple[BodyItem, ...]:
    """Return the body of a view's rule for an atom, its other variables renamed apart."""
    number = next(_numbers)
    by: dict[str, Term] = {
        each.name: Variable(f"{each.name}•{number}") for each in term_variables(rule.body)
    }
    for formal, actual in zip(rule.heads[0].arguments, atom.arguments, strict=True):
        if isinstance(formal, Variable):
            by[formal.name] = actual
    body: tuple[BodyItem, ...] = substitute(rule.body, by)
    return body


def _implies(clauses: Sequence[Clause], others: Iterable[Clause]) -> bool:
    """Whether clauses derive the frozen heads of others from their frozen bodies."""
    rules = [(_edge(each.heads[0], "head"), list(map(_edge, each.body))) for each in clauses]
    for clause in others:
        label, head = _edge(clause.heads[0], "head")
        facts: dict[str, list[tuple[str, ...]]] = {}
        for name, values in map(_edge, clause.body):
            facts.setdefault(name, []).append(values)
        if not any(
            own == label and _derives(head, variables, body, facts)
            for (own, variables), body in rules
        ):
            return False
    return True


def _derives(
    head: tuple[str, ...], variables: tuple[str, ...], body: Sequence[Edge], facts: Facts
) -> bool:
    """Whether a rule derives a head from facts: a homomorphism maps its body into them."""
    start: dict[str, str] = {}
    for variable, value in zip(variables, head, strict=True):
        if start.setdefault(variable, value) != value:
            return False
    stack: list[tuple[int, dict[str, str]]] = [(0, start)]
    order = sorted(body, key=lambda edge: len(facts.get(edge[0], ())))
    while stack:
        at, bound = stack.pop()
        if at == len(order):
            return True
        label, names = order[at]
        for values in facts.get(label, ()):
            further = dict(bound)
            if all(
                further.setdefault(name, value) == value
                for name, value in zip(names, values, strict=True)
            ):
                stack.append((at + 1, further))
    return False


def _edge(item: BodyItem, kind: str = "") -> Edge:
    """Return an item's text without variables, and its variables; each `_` is a new one."""
    if not isinstance(item, Atom):
        return item_edge(item)
    texts: list[str] = []
    names: list[str] = []
    for each in item.arguments:
        is_wildcard = isinstance(each, Wildcard)
        own = [variable.name for variable in term_variables(each)]
        bare = Variable("·") if is_wildcard else substitute(each, dict.fromkeys(own, Variable("·")))
        texts.append(print_term(bare))
        names += [f"_•{next(_numbers)}"] if is_wildcard else own
    return f"{kind}{item.sign}{item.relation}({', '.join(texts)})", tuple(names)


# --- the checks ----------------------------------------------------------------------------------


RANDOM_DATABASES = 20
BATCH_MAX_TUPLES = 100
"""The maximum number of tuples of each relation that are deleted, and inserted."""
RANDOM_SEED = 7
PROGRAM_CONSTANTS_MAX = 3
"""The maximum number of constants of the program among the values of a type."""
RANDOM_TUPLES_MAX = 12
"""The maximum number of tuples of a relation."""

Row = tuple[Value, ...]

_VALUES: dict[Kind, list[Value]] = {
    Kind.SYMBOL: ["a", "b", "c"],
    Kind.NUMBER: [0, 1, 2],
    Kind.UNSIGNED: [0, 1, 2],
    Kind.FLOAT: [0.0, 1.0, 2.5],
    Kind.FLOAT32: [0.0, 1.0, 2.5],
    Kind.DECIMAL: [Decimal(0), Decimal(1), Decimal(2)],
    Kind.BOOL: [False, True],
    Kind.DATE: [date(2026, 1, day) for day in (1, 2, 3)],
    Kind.TIMESTAMP_NTZ: [datetime(2026, 1, day) for day in (1, 2, 3)],  # noqa: DTZ001 - of no zone
    Kind.BINARY: [b"", b"a", b"b"],
    Kind.DURATION: [timedelta(day) for day in (0, 1, 2)],
    Kind.MONTHS: [0, 1, 2],
    Kind.TIME_OF_DAY: [time(hour) for hour in (0, 1, 2)],
    Kind.TIMESTAMP: [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: what was compared, and what differs."""

    check: str
    about: str
    differences: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(
    advice: Advice, before: Program, after: Program, tables: "Mapping[str, pa.Table] | None"
) -> Iterator[CheckResult]:
    """Yield the results of the checks."""
    yield _check_clauses(advice)
    yield _check_random_databases(advice, before, after)
    if tables is not None:
        with open_scratch_database(before, dict(tables)) as original:
            answers = {name: original.query(full_goal(original, name)) for name in advice.queries}
        with open_scratch_database(after, dict(tables), before=before) as changed:
            yield _check_data(changed, answers)
            yield _check_changes(advice, changed, dict(tables))


def _check_clauses(advice: Advice) -> CheckResult:
    """Compare the clauses themselves."""
    views = {name: each.clauses for name, each in advice.views.items()}
    changed = {name: each for name, each in advice.predicates.items() if each.is_applicable}
    summaries = {name for name, each in advice.views.items() if each.rows is not None}
    proved = {name: each for name, each in changed.items() if not summaries & set(each.views)}
    differences = tuple(
        f"the rewriting of {name} does not mean the same"
        for name, each in proved.items()
        if not is_equivalent(each.originals, each.rewritten, views)
    )
    about = f"{', '.join(proved) or 'nothing'} on canonical databases"
    rest = ", ".join(name for name in changed if name not in proved)
    about += f", {rest} on data only" if rest else ""
    return CheckResult("static", about, differences)


def _check_random_databases(advice: Advice, before: Program, after: Program) -> CheckResult:
    """Compare the answers on small random databases."""
    dice = random.Random(RANDOM_SEED)  # noqa: S311 - the data protects nothing
    differences: list[str] = []
    done = 0
    with open_scratch_database(before, {}) as original:
        loaded = state_of(original).loaded
        checked, normal = loaded.checked, loaded.normal
        names = [
            name
            for name, each in normal.relations.items()
            if each.is_declared and name not in normal.bags.values()
            if not normal.relations[normal.bases.get(name, name)].is_derived
        ]
    for _ in range(RANDOM_DATABASES):
        rows = _random_tables(checked.program, normal, names, dice)
        try:
            answers = [_answers(each, rows, advice) for each in (before, after)]
        except CorollaryError:
            continue  # an expression has no value for these tuples, such as a division by zero
        done += 1
        if answers[0] != answers[1]:
            differences.append(f"answers differ on {rows}")
            break
    return CheckResult("random", f"answers on {done} random databases", tuple(differences))


def _answers(program: Program, rows: Mapping[str, list[Row]], advice: Advice) -> object:
    with open_scratch_database(program, {}) as database:
        with database.transaction() as transaction:
            for name, each in rows.items():
                transaction.insert(name, each)
        return [
            sorted(to_python(database.query(full_goal(database, name))), key=repr)
            for name in advice.queries
        ]


def _check_data(changed: Database, answers: "Mapping[str, pa.Table]") -> CheckResult:
    """Compare the answers of the changed program with those of the original."""
    differences, total = [], 0
    for name, before in answers.items():
        now = changed.query(full_goal(changed, name))
        added, removed = difference(before, now)
        total += before.num_rows
        if added.num_rows or removed.num_rows:
            differences.append(
                f"{name} has {added.num_rows:,} tuples more and {removed.num_rows:,} fewer"
            )
    return CheckResult("data", f"{total:,} answers, both ways", tuple(differences))


def _check_changes(
    advice: Advice, database: Database, tables: "dict[str, pa.Table]"
) -> CheckResult:
    """Compare maintained views with recomputed ones after random changes."""
    dice = random.Random(RANDOM_SEED)  # noqa: S311
    used = advice.scheme.reachable(set(advice.predicates))
    changed = sum(
        _change_randomly(database, name, table, dice, BATCH_MAX_TUPLES)
        for name, table in tables.items()
        if name in used and table.num_columns
    )
    differences = tuple(find_differing_views(database, advice.views))
    return CheckResult(
        "changes", f"{', '.join(advice.views)} after {changed:,} changed tuples", differences
    )


def _change_randomly(
    database: Database, name: str, table: "pa.Table", dice: random.Random, count: int
) -> int:
    """Delete and insert some tuples of a relation; return the number of changed tuples.

    Inserted tuples combine existing values of each column; a batch that violates a constraint is
    skipped.
    """
    if not table.num_rows:
        return 0
    picked = [dice.randrange(table.num_rows) for _ in range(2 * count)]
    rows = to_python(table.take(picked))
    mixed = [tuple(dice.choice(rows)[at] for at in range(len(rows[0]))) for _ in range(count)]
    done = 0
    for verb, some in (("delete", rows[:count]), ("insert", mixed)):
        try:
            with database.transaction() as transaction:
                getattr(transaction, verb)(name, some)
        except ConstraintError:
            continue
        change = transaction.changes.get(name)
        done += 0 if change is None else sum(change.counts)
    return done


def find_differing_views(database: Database, views: Mapping[str, object]) -> Iterator[str]:
    """Yield the stored views that differ from their recomputation."""
    normal = state_of(database).loaded.normal
    bases = {
        name: state_of(database).engine.read(name)
        for name, each in normal.relations.items()
        if not each.is_derived
    }
    recomputed = recompute(normal, bases, state_of(database).console)
    for name in views:
        if normal.relations[name].is_stored:
            added, removed = difference(recomputed.read(name), state_of(database).engine.read(name))
            if added.num_rows or removed.num_rows:
                yield f"{name} has {added.num_rows:,} tuples too many, {removed.num_rows:,} too few"


# --- random data ---------------------------------------------------------------------------------


def _random_tables(
    program: Program, normal: NormalProgram, names: Iterable[str], dice: random.Random
) -> dict[str, list[Row]]:
    """Return random tuples: few values, and declared dependencies hold."""
    constants = _constants(program)
    declared = list(resolve_dependencies(program, normal))
    return {
        name: _rows(
            normal.relations[name],
            [each for each in declared if each.relation == name],
            constants,
            dice,
        )
        for name in names
    }


def _constants(program: Program) -> dict[Kind, list[Value]]:
    found: dict[Kind, list[Value]] = {}
    for clause in program.clauses:
        for part in chain.from_iterable(subterms(term) for term, _ in clause_terms(clause)):
            if isinstance(part, Constant) and part.type is not None and part.value is not None:
                found.setdefault(part.type.logical_kind, []).append(part.value)
    return found


def _rows(
    relation: Relation,
    dependencies: Sequence[ResolvedDependency],
    constants: dict[Kind, list[Value]],
    dice: random.Random,
) -> list[Row]:
    rows: list[Row] = []
    for _ in range(dice.randint(0, RANDOM_TUPLES_MAX)):
        row = tuple(_value(type_, constants, dice) for type_ in relation.types)
        if row not in rows and all(_is_consistent(row, rows, each) for each in dependencies):
            rows.append(row)
    return rows


def _is_consistent(row: Row, rows: Iterable[Row], dependency: ResolvedDependency) -> bool:
    """Whether a row and the others satisfy a dependency."""
    return all(
        any(row[at] != other[at] for at in dependency.determinants)
        or all(row[at] == other[at] for at in dependency.dependents)
        for other in rows
    )


def _value(type_: Type, constants: dict[Kind, list[Value]], dice: random.Random) -> Value:
    if type_.nullable and dice.random() < 0.2:
        return None
    return dice.choice(
        _VALUES[type_.logical_kind] + constants.get(type_.logical_kind, [])[:PROGRAM_CONSTANTS_MAX]
    )
