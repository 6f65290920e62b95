"""Every case with facts, under random inserts and deletes: maintained = evaluated from scratch.

The facts of a case, in its text and in its files, become tuples that transactions insert and
delete. After each transaction all relations equal those of a new database with the same tuples.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import corollary
from corollary.console import SilentConsole
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.logic import AggregateTerm, Clause, Functor
from corollary.core.printer import print_program
from corollary.core.program import NormalProgram, Program
from corollary.database.database import Database, state_of
from corollary.database.engines import SparkFrames
from corollary.database.program.loaded_program import LoadedProgram, load_program, read_programs
from corollary.database.writing.inputs import FileLocations, read_inputs
from corollary.errors import CorollaryError, InputError
from support.cases.evaluation import WORKING, feed, name_of
from support.comparison import comparable
from support.selection import examples, seed_of_run

Row = tuple[Any, ...]
Tuples = dict[str, set[Row]]
LIMITS = Limits(rounds=500, tuples=200_000, seconds=120)
FACTS_MAX_ROWS = 400
"""Cases with more facts have no more shapes, and take long."""
ALGORITHMS = ("auto", "recompute", "dred", "pf", "epf", "ranked")
NOT_APPLICABLE = "C0820"
"""The code of an algorithm that does not maintain such a relation."""
SKIPPED = {
    ".limitsize": "which tuples a limited relation holds is not determined",
    "autoinc": "a counter is for one-shot runs",
    "choice-domain": "what was chosen stays, whatever a new start would choose",
}


def without_facts(loaded: LoadedProgram) -> str:
    """Return the rules of a program as text: what it reads and the facts in it are left out."""
    program: Program = loaded.program
    rules = tuple(each for each in program.clauses if not _is_fact(each))
    outputs = tuple(each for each in program.directives if each.name not in ("input", "printsize"))
    return print_program(replace(program, clauses=rules, directives=outputs))


def _is_fact(clause: Clause) -> bool:
    return not clause.body and not any(
        isinstance(term, Functor | AggregateTerm)
        for head in clause.heads
        for term in head.arguments
    )


def tuples_of(loaded: LoadedProgram, folder: Path) -> Tuples:
    """Return the facts of a case, in its text and in its files, by relation."""
    normal: NormalProgram = loaded.normal
    owners = {base: name for name, base in normal.bases.items()}
    found: Tuples = {}
    for name, rows in normal.facts.items():
        found.setdefault(owners.get(name, name), set()).update(rows)
    places = FileLocations(folder / "facts")
    for name, table in read_inputs(loaded, places, SilentConsole(), SparkFrames()):
        found.setdefault(name, set()).update(to_python(table))
    return found


class Shuffle:
    """Random rows whose values occur in the facts of a case, in a column of the same kind."""

    def __init__(self, normal: NormalProgram, facts: Tuples, generator: random.Random) -> None:
        self._random = generator
        self._types = {name: normal.relations[name].types for name in facts}
        self._pool: dict[Any, list[Any]] = {}
        for name, rows in facts.items():
            for row in sorted(rows, key=repr):
                for value, type_ in zip(row, self._types[name], strict=True):
                    self._pool.setdefault((type_.kind, type_.scale), []).append(value)

    def row(self, name: str) -> Row:
        return tuple(
            self._random.choice(self._pool[type_.kind, type_.scale]) for type_ in self._types[name]
        )

    def step(self, present: Mapping[str, set[Row]]) -> tuple[Tuples, Tuples]:
        """Return what is inserted and what is deleted."""
        inserted: Tuples = {}
        deleted: Tuples = {}
        for name in self._random.sample(sorted(present), self._random.randint(1, len(present))):
            rows = sorted(present[name], key=repr)
            count = self._random.choice((0, 1, 1, 2, len(rows) // 3))
            deleted[name] = set(self._random.sample(rows, min(count, len(rows))))
            new = {self.row(name) for _ in range(self._random.choice((0, 1, 1, 2, 4)))}
            inserted[name] = {
                row
                for row in new
                if all(v is not None or t.nullable for v, t in self._cells(name, row))
            }
        return inserted, deleted

    def _cells(self, name: str, row: Row) -> Any:
        return zip(row, self._types[name], strict=True)


def after(present: Tuples, step: tuple[Tuples, Tuples]) -> Tuples:
    inserted, deleted = step
    return {
        name: (rows - deleted.get(name, set())) | inserted.get(name, set())
        for name, rows in present.items()
    }


def contents(db: Database) -> dict[str, Any]:
    relations = state_of(db).loaded.normal.relations
    return {
        name: comparable(db.relation(name).rows())
        for name, each in relations.items()
        if each.is_declared and not each.is_virtual
    }


def from_scratch(text: str, facts: Tuples) -> dict[str, Any] | None:
    """Return all relations; None if the evaluation fails."""
    db = corollary.open(None, engine="local", limits=LIMITS)
    try:
        db.load(text=text)
        change(db, facts, {})
        return contents(db)
    except CorollaryError:
        return None
    finally:
        db.close()


def change(db: Database, inserted: Tuples, deleted: Tuples, **options: Any) -> None:
    with db.transaction(**options) as tx:
        for name, rows in deleted.items():
            if rows:
                tx.delete(name, sorted(rows, key=repr))
        for name, rows in inserted.items():
            if rows:
                tx.insert(name, sorted(rows, key=repr))


@pytest.mark.matrix(24)
@pytest.mark.parametrize("folder", WORKING, ids=name_of)
def test_random_changes_give_what_an_evaluation_from_scratch_gives(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(folder, monkeypatch)
    text = (folder / "program.dl").read_text("utf-8")
    for word, reason in SKIPPED.items():
        if word in text:
            pytest.skip(reason)
    loaded = load_program(read_programs([folder / "program.dl"]))
    facts = tuples_of(loaded, folder)
    if not facts or not any(facts.values()):
        pytest.skip("it has no facts")
    if loaded.normal.bags:
        pytest.skip("copies are counted in tests/property/test_bags.py")
    if sum(map(len, facts.values())) > FACTS_MAX_ROWS:
        pytest.skip("it has many facts")
    rules = without_facts(loaded)
    generator = random.Random(f"{seed_of_run()} {name_of(folder)}")
    first = crc32(name_of(folder).encode()) + seed_of_run()
    for at in range(examples(1, len(ALGORITHMS))):
        algorithm = ALGORITHMS[(first + at) % len(ALGORITHMS)]
        check(rules, loaded.normal, facts, algorithm, generator)


def check(
    rules: str, normal: NormalProgram, facts: Tuples, algorithm: str, generator: random.Random
) -> None:
    shuffle = Shuffle(normal, facts, generator)
    present: Tuples = {name: set() for name in facts}
    db = corollary.open(None, engine="local", limits=LIMITS, algorithm=algorithm)
    try:
        db.load(text=rules)
    except InputError as error:
        if error.diagnostics[0].code != NOT_APPLICABLE:
            raise
        return
    steps = [(facts, {name: set[Row]() for name in facts})]
    for number in range(5):
        step = steps[0] if number == 0 else shuffle.step(present)
        now = after(present, step)
        wanted = from_scratch(rules, now)
        try:
            change(db, *step)
        except CorollaryError:
            assert wanted is None, (algorithm, step)
        else:
            assert contents(db) == wanted, (algorithm, step)
            present = now
    db.close()
