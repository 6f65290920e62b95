"""A fixed sequence of transactions in a process that may be killed at any point of it.

| command | does |
|---|---|
| `crash_sequence.py run PLACE` | the sequence; `COROLLARY_FAULT` says where it dies |
| `crash_sequence.py insist PLACE` | the sequence, and what fails again |
| `crash_sequence.py nurse` | the jobs that it reads, each in a fork, which starts at once |

Every transaction has an idempotency key, so the sequence can be run again after a crash: what was
committed is told, the rest is done. Commit n is that of step n, and `STATES[n]` what is true then.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import corollary
from corollary import fault
from corollary.database import warehouse_store
from corollary.database.program.loaded_program import load_program
from corollary.database.upkeep.retention import Retention, collect
from corollary.errors import CorollaryError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from corollary.warehouse import warehouse
from support.figures import FIGURES, KILLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corollary.database.database import Database

T = TypeVar("T")

INLINE_BYTES = 1_500
"""So that a few dozen tuples are large."""
COMMITS = 3
"""So that there are several folds."""
KEEP = 4
"""So many commits `gc` leaves."""

TEXT = """
.decl edge(x: number, y: number)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl account(name: symbol, balance: number) key(name)
.decl total(n: number)
total(n) :- n = sum b : { account(_, b) }.
.output reach
.output total
"""
RULE = "reach(x, x) :- account(_, x)."
CHAIN = [(at, at + 1) for at in range(100, 130)]
Rows = dict[str, list[tuple[Any, ...]]]
STEPS: tuple[tuple[Rows, Rows, str, str], ...] = (
    ({}, {}, "", ""),  # puts the program into force
    ({"edge": [(1, 2), (2, 3)], "account": [("ann", 1), ("bob", 2)]}, {}, "", ""),
    ({"edge": CHAIN}, {}, "", ""),
    ({"account": [("ann", 2), ("bob", 1)]}, {"account": [("ann", 1), ("bob", 2)]}, "", ""),
    ({"edge": [(3, 1)]}, {"edge": CHAIN[10:12]}, RULE, ""),
    ({}, {"edge": CHAIN}, "", ""),
    ({"account": [("eve", 7)]}, {"edge": [(1, 2)]}, "", RULE),
)
"""What is inserted, what is deleted, a rule that comes, a rule that goes."""
GC_AFTER = 5
"""`gc` runs behind this step, and at the end."""


# ------------------------------------------------------------------------------------- in a process


def run(place: str, acknowledge: Callable[[int], object]) -> None:
    """Run the sequence, and say which commits are acknowledged."""
    with settings(), closing(corollary.open(place)) as db:
        for number in range(1, len(STEPS) + 1):
            step(db, number, acknowledge)


def step(db: Database, number: int, acknowledge: Callable[[int], object]) -> None:
    """Commit a step, publish, and tidy up from time to time."""
    transact(db, number)
    acknowledge(number)
    db.publish()
    if number in (GC_AFTER, len(STEPS)):
        assert db._store is not None
        collect(db._store.warehouse, Retention(commits=KEEP))


def insist(place: str, acknowledge: Callable[[int], object]) -> None:
    """Run the sequence, and do every step again that fails; print what is said then."""
    with settings():
        db = told(lambda: corollary.open(place))
        for number in range(1, len(STEPS) + 1):
            told(lambda number=number: step(db, number, acknowledge))  # type: ignore[misc]
        db.close()


def told(work: Callable[[], T]) -> T:
    """Do some work, and again where it fails with a message for the user."""
    while True:
        try:
            return work()
        except CorollaryError as error:
            print(f"{type(error).__name__} {error}", file=sys.stderr)


@contextmanager
def settings() -> Iterator[None]:
    """Let small things be large."""
    before = warehouse.INLINE_BYTES, warehouse_store.FOLD_MAX_COMMITS
    warehouse.INLINE_BYTES, warehouse_store.FOLD_MAX_COMMITS = INLINE_BYTES, COMMITS
    try:
        yield
    finally:
        warehouse.INLINE_BYTES, warehouse_store.FOLD_MAX_COMMITS = before


def transact(db: Database, number: int) -> None:
    """Commit a step, unless that was done before; it has the commit of its number either way."""
    inserts, deletes, add, remove = STEPS[number - 1]
    tx = db.transaction(idempotency=f"step {number}")
    if number == 1:
        tx.set_program(load_program(parse(SourceFile("program", TEXT))).program)
    if number > max(1, db.commits):
        for name, rows in deletes.items():
            tx.delete(name, rows)
        for name, rows in inserts.items():
            tx.insert(name, rows)
        if add:
            tx.add_rule(add)
        if remove:
            tx.remove_rule(remove)
    tx.commit()
    assert tx.commit_number == number, (tx.commit_number, number)


def nurse(work: Callable[[str, Callable[[int], object]], None] = run) -> None:
    """Do the jobs that come in, each in a fork, and answer with what became of it."""
    import deltalake  # noqa: F401  so that no fork has to
    import psycopg  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        acknowledged, child_end = os.pipe()
        child = os.fork()
        if not child:
            os.close(acknowledged)
            _child(job, child_end, work)
        os.close(child_end)
        with os.fdopen(acknowledged) as pipe:
            said = pipe.read().split()
        _, status = os.waitpid(child, 0)
        print(json.dumps({"said": said, "code": os.waitstatus_to_exitcode(status)}), flush=True)


def _child(
    job: dict[str, Any], pipe: int, work: Callable[[str, Callable[[int], object]], None]
) -> None:
    os.environ["COROLLARY_FAULT"] = job["fault"]
    os.environ["COROLLARY_TEST_JOB"] = str(job["job"])
    importlib.reload(fault)
    passed: list[str] = []
    if job["is_counted"]:
        fault.hit = passed.append
    code = 1
    try:
        work(job["place"], lambda number: os.write(pipe, f"{number} ".encode()))
        os.write(pipe, " ".join(passed).encode())
        code = 0
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# ------------------------------------------------------------------------------------ from outside


class Nursery:
    """A process that runs the sequence, or that of another script, in forks of itself."""

    def __init__(self, script: str = __file__) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script, "nurse"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(
        self, place: str, fault: str = "", *, is_counted: bool = False, job: int = 0
    ) -> tuple[int, list[str]]:
        """Run the sequence; return its exit code, and what it has said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"place": place, "fault": fault, "is_counted": is_counted, "job": job}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        FIGURES[KILLED] += answer["code"] == -signal.SIGKILL
        return answer["code"], answer["said"]

    def passes(self, place: str) -> Counter[str]:
        """Return how often the sequence passes each point."""
        code, said = self.run(place, is_counted=True)
        assert code == 0
        return Counter(each for each in said if each in fault.TRANSACTION_POINTS)

    def crash(self, place: str, point: str) -> int:
        """Run the sequence until it dies at a point; return the last commit it acknowledged."""
        code, said = self.run(place, point)
        assert code == -9, f"not killed at {point}"
        return max(map(int, said), default=0)


@cache
def states() -> tuple[dict[str, set[tuple[Any, ...]]], ...]:
    """Return what is true after each step, as the oracle says."""
    from oracles import evaluation

    found: list[dict[str, set[tuple[Any, ...]]]] = [{}]
    base: dict[str, set[tuple[Any, ...]]] = {"edge": set(), "account": set()}
    rules: list[str] = []
    for inserts, deletes, add, remove in STEPS:
        for name, rows in deletes.items():
            base[name] -= set(rows)
        for name, rows in inserts.items():
            base[name] |= set(rows)
        rules = [each for each in [*rules, add] if each and each != remove]
        found.append(evaluation.evaluate(TEXT + "\n".join(rules) + "\n", base))
    return tuple(found)


if __name__ == "__main__":
    if sys.argv[1] == "nurse":
        nurse()
    else:
        work = {"run": run, "insist": insist}[sys.argv[1]]
        work(sys.argv[2], lambda number: os.write(1, f"{number}\n".encode()))
