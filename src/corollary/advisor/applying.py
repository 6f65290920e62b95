"""Putting advice into force in a database, and taking it back.

One transaction: the views are declared, built and maintained from then on, and the rewritten rules
stand in for the originals under the same names. A note in the warehouse keeps the originals. It is
written before the commit; one whose views the program does not have says nothing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from corollary.advisor.advice import Advice
from corollary.core.clause_printer import print_clause
from corollary.core.printer import print_program
from corollary.core.program import Program
from corollary.core.rules import Clause
from corollary.database.database import Database, warehouse_of
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.frontends.datalog.parse import parse_clause
from corollary.warehouse.advice_notes import read_advice, write_advice


@dataclass(frozen=True, slots=True)
class Applied:
    """Advice that is in force: its views, and the clauses before and after by predicate."""

    views: tuple[str, ...]
    originals: Mapping[str, tuple[str, ...]]
    rewritten: Mapping[str, tuple[str, ...]]

    def as_note(self) -> dict[str, Any]:
        """Return it as the warehouse keeps it."""
        return {
            "views": list(self.views),
            "originals": {name: list(each) for name, each in self.originals.items()},
            "rewritten": {name: list(each) for name, each in self.rewritten.items()},
        }

    @classmethod
    def of_note(cls, note: dict[str, Any]) -> "Applied":
        """Return what a note says."""
        originals, rewritten = (
            {name: tuple(each) for name, each in note[key].items()}
            for key in ("originals", "rewritten")
        )
        return cls(tuple(note["views"]), originals, rewritten)


def fingerprint(program: Program) -> str:
    """Return a hash of a program's text as it is printed."""
    return hashlib.blake2b(print_program(program).encode(), digest_size=8).hexdigest()


def apply(database: Database, advice: Advice, before: Program, after: Program) -> Transaction:
    """Put the program that follows advice into force.

    Args:
        database: whose program it is.
        advice: the advice.
        before: the program that the advice is for.
        after: the program that follows it.

    Raises:
        InputError: the database has another program than the one that the advice is for.
    """
    changed = {name: each for name, each in advice.predicates.items() if each.is_applicable}
    applied = Applied(
        tuple(advice.views),
        {name: _texts(before, name) for name in changed},
        {name: tuple(map(print_clause, each.rewritten)) for name, each in changed.items()},
    )

    def edit(program: Program) -> Program:
        if fingerprint(program) != fingerprint(before):
            raise InputError.of(
                "C1103",
                "The database has another program than the one that the advice is for.",
                None,
                "ask for advice on the program in force: name the warehouse instead of files",
            )
        return after

    transaction = database.transaction()
    transaction.edit(edit)
    known = _notes(database)
    _write(database, [*known, applied])
    try:
        transaction.commit()
    except BaseException:
        _write(database, known)
        raise
    return transaction


def revert(database: Database) -> tuple[Applied, Transaction]:
    """Take back the advice that was put into force last.

    Raises:
        InputError: no advice is in force, or the rewritten rules have been changed since.
    """
    known = _notes(database)
    if not known:
        raise InputError.of(
            "C1104",
            "No advice is in force in this database.",
            None,
            "`corollary advise PROGRAM --query q --apply W` puts some into force",
        )
    last = known[-1]
    transaction = database.transaction()
    transaction.edit(lambda program: reverted(program, last), dropped=last.views)
    transaction.commit()
    _write(database, known[:-1])
    return last, transaction


def reverted(program: Program, applied: Applied) -> Program:
    """Return a program with the original clauses in place of the rewritten ones.

    Raises:
        InputError: somebody has changed the rewritten clauses, or other rules read the views.
    """
    rewritten = {text for texts in applied.rewritten.values() for text in texts}
    gone = set(applied.views)
    kept: list[Clause] = []
    found: set[str] = set()
    for clause in program.clauses:
        text = print_clause(clause)
        if text in rewritten:
            for name in {head.relation for head in clause.heads} - found:
                found.add(name)
                kept += [parse_clause(each, "advice") for each in applied.originals[name]]
        elif not {head.relation for head in clause.heads} & gone:
            kept.append(clause)
    if found != set(applied.rewritten):
        names = ", ".join(f"`{name}`" for name in sorted(set(applied.rewritten) - found))
        raise InputError.of(
            "C1104",
            f"The rules of {names} are not those of the advice any more.",
            None,
            "edit the program instead, and drop the views with it",
        )
    return replace(
        program,
        clauses=tuple(kept),
        declarations=tuple(each for each in program.declarations if each.name not in gone),
    )


def _texts(program: Program, name: str) -> tuple[str, ...]:
    """Return the clauses of a predicate; of one with several heads, the part that is its own."""
    return tuple(
        print_clause(replace(clause, heads=tuple(h for h in clause.heads if h.relation == name)))
        for clause in program.clauses
        if clause.body and any(head.relation == name and not head.sign for head in clause.heads)
    )


def _notes(database: Database) -> list[Applied]:
    """Return the advice that is in force, the oldest first."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return []
    known = {each.name for each in database.program.declarations}
    notes = map(Applied.of_note, read_advice(warehouse.catalog))
    return [each for each in notes if set(each.views) <= known]


def _write(database: Database, applied: list[Applied]) -> None:
    warehouse = warehouse_of(database)
    if warehouse is not None:
        write_advice(warehouse.catalog, [each.as_note() for each in applied])
