"""Verifying advice, four ways; each says what it has found.

| check | how |
|---|---|
| static | the rewriting, unfolded, and the original imply each other on canonical databases |
| random | both programs answer alike on small random databases |
| data | both answer alike on the real data |
| changes | after random inserts and deletes, every new view is what computing it anew gives |
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corollary.advisor.advice import Advice
from corollary.advisor.equivalence import is_equivalent
from corollary.advisor.random_data import Row, random_tables
from corollary.advisor.scratch import all_of, scratch_database
from corollary.core.arrow import to_python
from corollary.core.program import Program
from corollary.database.database import Database, state_of
from corollary.database.upkeep.recompute import recompute
from corollary.errors import ConstraintError, CorollaryError
from corollary.warehouse.set_difference import difference

if TYPE_CHECKING:
    import pyarrow as pa

RANDOM = 20
"""So many random databases are tried."""
BATCH = 100
"""So many tuples of each relation change at most."""
SEED = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found: how much was compared, and what differs."""

    check: str
    about: str
    differences: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(
    advice: Advice, before: Program, after: Program, tables: "Mapping[str, pa.Table] | None"
) -> Iterator[Finding]:
    """Yield what the checks find.

    Args:
        advice: the advice.
        before: the program.
        after: the program that follows the advice.
        tables: the base tuples, if there is data.
    """
    yield static(advice)
    yield at_random(advice, before, after)
    if tables is not None:
        with scratch_database(before, dict(tables)) as original:
            answers = {name: original.query(all_of(original, name)) for name in _asked(advice)}
        with scratch_database(after, dict(tables), before=before) as changed:
            yield on_data(changed, answers)
            yield under_changes(advice, changed, dict(tables))


def static(advice: Advice) -> Finding:
    """Compare the clauses themselves."""
    views = {name: each.clauses for name, each in advice.views.items()}
    changed = {name: each for name, each in advice.predicates.items() if each.is_applicable}
    wrong = tuple(
        f"the rewriting of {name} does not mean the same"
        for name, each in changed.items()
        if not is_equivalent(each.originals, each.rewritten, views)
    )
    return Finding("static", f"{', '.join(changed)} on canonical databases", wrong)


def at_random(advice: Advice, before: Program, after: Program) -> Finding:
    """Compare the answers on small random databases."""
    dice = random.Random(SEED)  # noqa: S311 - the data protects nothing
    wrong: list[str] = []
    done = 0
    with scratch_database(before, {}) as original:
        loaded = state_of(original).loaded
        checked, normal = loaded.checked, loaded.normal
        names = [
            name
            for name, each in normal.relations.items()
            if each.is_declared and not normal.relations[normal.bases.get(name, name)].is_derived
        ]
    for _ in range(RANDOM):
        rows = random_tables(checked.program, normal, names, dice)
        try:
            answers = [_answers(each, rows, advice) for each in (before, after)]
        except CorollaryError:
            continue  # random values that an expression has no value for
        done += 1
        if answers[0] != answers[1]:
            wrong.append(f"answers differ on {rows}")
            break
    return Finding("random", f"answers on {done} random databases", tuple(wrong))


def _answers(program: Program, rows: Mapping[str, list[Row]], advice: Advice) -> object:
    with scratch_database(program, {}) as database:
        with database.transaction() as transaction:
            for name, each in rows.items():
                transaction.insert(name, each)
        return [
            sorted(to_python(database.query(all_of(database, name))), key=repr)
            for name in _asked(advice)
        ]


def on_data(changed: Database, answers: "Mapping[str, pa.Table]") -> Finding:
    """Compare answers of the changed program with those of the original, both ways."""
    wrong, total = [], 0
    for name, before in answers.items():
        now = changed.query(all_of(changed, name))
        came, went = difference(before, now)
        total += before.num_rows
        if came.num_rows or went.num_rows:
            wrong.append(f"{name} has {came.num_rows:,} tuples more and {went.num_rows:,} fewer")
    return Finding("data", f"{total:,} answers, both ways", tuple(wrong))


def under_changes(advice: Advice, database: Database, tables: "dict[str, pa.Table]") -> Finding:
    """Compare maintained views with recomputed ones after random changes."""
    dice = random.Random(SEED)  # noqa: S311
    used = advice.scheme.below(set(advice.predicates))
    changed = sum(
        change_at_random(database, name, table, dice, BATCH)
        for name, table in tables.items()
        if name in used and table.num_columns
    )
    wrong = tuple(differing_views(database, advice.views))
    return Finding("changes", f"{', '.join(advice.views)} after {changed:,} changed tuples", wrong)


def change_at_random(
    database: Database, name: str, table: "pa.Table", dice: random.Random, count: int
) -> int:
    """Delete and insert some tuples of a relation; return how many changed.

    What is inserted mixes values that stand in the same columns; what would break a key is not.
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


def differing_views(database: Database, views: Mapping[str, object]) -> Iterator[str]:
    """Yield the stored views that are not what computing them anew gives."""
    normal = state_of(database).loaded.normal
    bases = {
        name: state_of(database).engine.read(name)
        for name, each in normal.relations.items()
        if not each.is_derived
    }
    fresh = recompute(normal, bases, state_of(database).console)
    for name in views:
        if normal.relations[name].is_stored:
            came, went = difference(fresh.read(name), state_of(database).engine.read(name))
            if came.num_rows or went.num_rows:
                yield f"{name} has {came.num_rows:,} tuples too many, {went.num_rows:,} too few"


def _asked(advice: Advice) -> list[str]:
    return list(advice.queries)
