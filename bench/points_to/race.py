"""A points-to analysis with contexts: evaluated, and maintained when one method changes.

| figure | how it is taken |
|---|---|
| evaluation | all facts in one transaction, contexts of one object |
| a method goes | the facts of one method deleted, median of several methods |
| a method comes | the same facts inserted again |
| share of recomputing | both together, in parts of the evaluation from scratch |

The analysis is `analysis.dl`: components for kinds of contexts, records for contexts. What is left
without a method has to be what an evaluation from scratch gives without it.
"""

import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import corollary
from bench.figure import Figure
from bench.points_to.program_facts import Facts, program_facts
from corollary.database.database import Database

NAME = "points-to-contexts"
ABOUT = "a points-to analysis with contexts on 200,000 facts, and one changed method"
METHODS = 6_000
CHANGED = 5
BAR_SHARE = 1.0
RELATION = "analysis.VarPointsTo"
ANALYSIS = Path(__file__).with_name("analysis.dl")


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    methods = max(160, int(METHODS * scale))
    facts, each_method = program_facts(methods)
    start = time.perf_counter()
    database = _analysed(facts)
    seconds = time.perf_counter() - start
    with database:
        about = f"{_count(facts):,} facts, {len(database.relation(RELATION)):,} tuples point to"
        yield Figure("evaluation", seconds, "s", None, about)
        going, coming, changed = [], [], []
        for number in _called(database):
            method = each_method[number]
            start = time.perf_counter()
            with database.transaction() as transaction:
                _delete(transaction, method)
            going.append(time.perf_counter() - start)
            changed.append(len(transaction.changes[RELATION].removed))
            start = time.perf_counter()
            with database.transaction() as transaction:
                _insert(transaction, method)
            coming.append(time.perf_counter() - start)
        told = f"{min(changed):,} to {max(changed):,} tuples of {RELATION} go with it"
        yield Figure("a method goes", statistics.median(going), "s", None, told)
        yield Figure("a method comes", statistics.median(coming), "s", None, "the same, again")
        share = (statistics.median(going) + statistics.median(coming)) / seconds
        wrong = tuple(_differences(database, facts, each_method[number]))
        yield Figure("share of recomputing", share, "×", BAR_SHARE, "", differences=wrong)


def _analysed(facts: Facts) -> Database:
    database = corollary.open(None, engine="local")
    database.load(text=f"{ANALYSIS.read_text()}\n.init analysis = OneObject\n")
    with database.transaction() as transaction:
        _insert(transaction, facts)
    return database


def _called(database: Database) -> list[int]:
    """Return the numbers of some methods that are called, from all over the program."""
    names = {row[2] for row in database.relation("analysis.CallGraph").rows()}
    numbers = sorted(int(name.removeprefix("m")) for name in names)
    return numbers[len(numbers) // CHANGED // 2 :: len(numbers) // CHANGED][:CHANGED]


def _insert(transaction: corollary.Transaction, facts: Facts) -> None:
    for relation, rows in facts.items():
        transaction.insert(relation, rows)


def _delete(transaction: corollary.Transaction, facts: Facts) -> None:
    for relation, rows in facts.items():
        transaction.delete(relation, rows)


def _count(facts: Mapping[str, list[tuple[str | int, ...]]]) -> int:
    return sum(map(len, facts.values()))


def _differences(database: Database, facts: Facts, method: Facts) -> Iterator[str]:
    """Say how relations without a method differ from those of an analysis that never had it."""
    with database.transaction() as transaction:
        _delete(transaction, method)
    rest = {name: sorted(set(rows) - set(method.get(name, ()))) for name, rows in facts.items()}
    with _analysed(rest) as other:
        for name in (RELATION, "analysis.FieldPointsTo", "analysis.CallGraph"):
            one, two = (set(each.relation(name).rows()) for each in (database, other))
            if one != two:
                yield f"{name}: {len(one - two)} too many, {len(two - one)} too few"
