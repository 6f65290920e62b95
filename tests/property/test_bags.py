"""Random writes to relations with copies, against counters: rows, changes, and views on them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.arrow import to_python
from corollary.core.printer import print_value
from corollary.core.states import State
from corollary.database.database import Database, warehouse_of
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.parts import MANUAL_PART, SOURCE_PREFIX, TEXT_PART
from corollary.database.upkeep.verify import verify
from corollary.database.writing.operations import Operation
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.maintained_database import ALGORITHMS
from support.selection import examples, sampled

Row = tuple[Any, ...]
Bag = Counter[Row]

PROGRAM = """\
.decl u(a: number?, b: symbol?) bag
.decl w(a: number?) bag
.decl has(a: number?)
has(a) := u(a, _).
.decl total(a: number?, n: number)
total(a, n) := u(a, _), n = sum c : { u.rows(a, _, c) }.
.decl joined(a: number?, b: symbol?) bag
joined.rows(a, b, n * m) := u.rows(a, b, n), w.rows(a, m).
.decl many(a: number?, b: symbol?) virtual bag
many.rows(a, b, n - 1) := u.rows(a, b, n), n > 1.
.decl lone(a: number?)
lone(a) := u(a, _), !w(a).
.decl reach(a: number?, b: number?)
reach(a, b) := w(a), w(b), a < b, u(a, _).
reach(a, c) := reach(a, b), reach(b, c).
.output u
.output joined
"""
SIGNS = {"insert": 1, "delete": -1, "unwatched": 0}
WRITERS = (MANUAL_PART, f"{SOURCE_PREFIX}crm")
ROWS: dict[str, list[Row]] = {
    "u": [(a, b) for a in (None, 1, 2, 3) for b in (None, "x", "y")],
    "w": [(a,) for a in (None, 1, 2, 3, 4)],
}


def views(u: Bag, w: Bag) -> dict[str, Bag]:
    """Return what the views hold; those that are sets have each row once."""
    totals: Counter[Any] = Counter()
    for (a, _), n in u.items():
        totals[a] += n
    less = {(a, b) for (a,) in w for (b,) in w if None not in (a, b) and a < b and a in totals}
    while True:
        more = less | {(a, d) for a, b in less for c, d in less if b == c}
        if more == less:
            break
        less = more
    return {
        "u": u,
        "w": w,
        "has": Counter({(a,) for a in totals}),
        "total": Counter({(a, n) for a, n in totals.items()}),
        "joined": Counter({(a, b): n * w[a,] for (a, b), n in u.items() if (a,) in w}),
        "many": Counter({row: n - 1 for row, n in u.items() if n > 1}),
        "lone": Counter({(a,) for a in totals if (a,) not in w}),
        "reach": Counter(less),
    }


class Model:
    """What each writer has put into each bag."""

    def __init__(self) -> None:
        self.parts: dict[tuple[str, str], Bag] = {}

    def write(self, relation: str, part: str, sign: State, rows: list[Row]) -> None:
        bag = self.parts.setdefault((relation, part), Counter())
        for row in rows:
            if sign is State.ADDED:
                bag[row] += 1
            elif bag[row]:
                bag[row] -= 1

    def bag(self, relation: str) -> Bag:
        found: Bag = Counter()
        for (name, _), bag in self.parts.items():
            if name == relation:
                found += bag
        return found

    def views(self) -> dict[str, Bag]:
        return views(self.bag("u"), self.bag("w"))


def facts(model: Model) -> str:
    """Return the program with the facts of the text."""
    listed = [
        f"{name}({', '.join(print_value(value) for value in row)})."
        for name in ROWS
        for row in model.parts.get((name, TEXT_PART), Counter()).elements()
    ]
    return PROGRAM + "\n".join(listed)


def step(db: Database, model: Model, generator: random.Random, algorithm: str) -> Any:
    """Do some writes in one transaction, in the database and in the model."""
    is_counting = algorithm == "counting"  # no recursion
    asked = dict.fromkeys(("has", "total", "joined.rows"), algorithm) if is_counting else algorithm
    with db.transaction(algorithm=asked) as tx:
        for _ in range(generator.randrange(1, 5)):
            relation = generator.choice(("u", "u", "w"))
            sign = generator.choice((State.ADDED, State.ADDED, State.REMOVED))
            rows = generator.choices(ROWS[relation], k=generator.randrange(1, 7))
            model.write(relation, MANUAL_PART, sign, rows)
            (tx.insert if sign is State.ADDED else tx.delete)(relation, rows)
        if generator.random() < 0.3:
            rows = generator.choices(ROWS["u"], k=4)
            sign = generator.choice((State.ADDED, State.REMOVED))
            operation = Operation(sign, "u", rows, WRITERS[1])
            model.write("u", WRITERS[1], sign, rows)
            tx.read(lambda: DeferredOperations([operation], {}))
        if generator.random() < 0.2:
            rows = generator.choices(ROWS["u"], k=2)
            sign = generator.choice((State.ADDED, State.REMOVED))
            model.write("u", TEXT_PART, sign, rows)
            text = facts(model)
            tx.set_program(parse(SourceFile("program", text)))
    return tx


def content(db: Database, name: str) -> Bag:
    return Counter(map(tuple, db.relation(name).rows()))


def published(root: Path, name: str) -> Bag:
    table = DeltaTable(str(root / "tables" / name)).to_pyarrow_table()
    return Counter(to_python(table))


def compare(db: Database, tx: Any, before: dict[str, Bag], after: dict[str, Bag]) -> None:
    """Compare rows and changes with the model."""
    for name, expected in after.items():
        assert content(db, name) == expected, name
        assert len(db.relation(name)) == expected.total()
        added, removed = expected - before[name], before[name] - expected
        change = tx.changes[name]
        assert Counter(to_python(change.added)) == added, name
        assert Counter(to_python(change.removed)) == removed, name
        assert change.counts == (added.total(), removed.total())
        assert (name in set(tx.changes)) == bool(added or removed), name
    assert not {"u.rows", "w.rows", "joined.rows", "many.rows"} & set(tx.changes)


@pytest.mark.smoke
@pytest.mark.parametrize("algorithm", sampled(ALGORITHMS, 3, ("auto",)))
@pytest.mark.parametrize("seed", range(examples(1, 12)))
def test_bags_in_memory(seed: int, algorithm: str) -> None:
    generator, model = random.Random(seed), Model()
    db = corollary.open(None, engine="local")
    db.load(text=PROGRAM)
    db.watch("many")
    for _ in range(12):
        before = model.views()
        tx = step(db, model, generator, algorithm)
        compare(db, tx, before, model.views())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(1, 10)))
def test_bags_in_a_warehouse(seed: int, tmp_path: Path) -> None:
    generator, model = random.Random(seed), Model()
    db = corollary.open(tmp_path, engine="local")
    db.load(text=PROGRAM)
    past: dict[int, dict[str, Bag]] = {}
    changed: dict[int, list[Bag]] = {}
    for _ in range(10):
        before = model.views()
        db.watch("many")
        tx = step(db, model, generator, "auto")
        after = model.views()
        compare(db, tx, before, after)
        if tx.commit_number is not None:
            past[tx.commit_number] = after
            changed[tx.commit_number] = [after["u"] - before["u"], before["u"] - after["u"]]
        if generator.random() < 0.5:
            result = db.publish(tx)
            assert result is None or not result.problems
            for name in ("u", "joined"):
                assert published(tmp_path, name) == after[name], name
        if generator.random() < 0.4:
            db.close()
            db = corollary.open(tmp_path, engine="local")
            for name, expected in after.items():
                assert content(db, name) == expected
    fed = {name: Counter[Row]() for name in ("u", "joined", "many")}
    for name, bag in fed.items():
        for feed in db.feed(name):
            relation, table = feed.relation, feed.arrow()
            assert relation.name == name
            for row in to_python(table):
                bag[row[:-3]] += SIGNS[row[-3]]
        assert bag == after[name], name
    warehouse = warehouse_of(db)
    assert warehouse is not None
    assert not verify(warehouse).findings
    for number, expected in past.items():
        then = db.at(number)
        assert content(then, "u") == expected["u"]
        assert content(then, "many") == expected["many"]
        change = db.changes(number).get("u")
        if change is None:
            assert not any(changed[number])
        else:
            assert [Counter(to_python(e)) for e in (change.added, change.removed)] == changed[
                number
            ]
    db.close()
