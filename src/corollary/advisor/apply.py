"""Applies advice to a database, and reverts it.

In one transaction the views are declared, built and maintained from then on, and the rewritten
rules replace the originals under the same names. A note in the warehouse records the originals. It
is written before the commit, so that a crash cannot lose it; a note whose views the program does
not have is ignored.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corollary.advisor.advice import Advice
from corollary.core.logic import Clause
from corollary.core.printer import print_clause, print_program
from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.database import Database, warehouse_of
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse_clause
from corollary.warehouse.catalog.applied_advice import read_advice, write_advice


@dataclass(frozen=True, slots=True)
class AppliedAdvice:
    """Advice that is in force: its views, and the clauses before and after by predicate."""

    views: tuple[str, ...]
    originals: Mapping[str, tuple[str, ...]]
    rewritten: Mapping[str, tuple[str, ...]]

    def as_note(self) -> dict[str, Any]:
        """Return the note that the warehouse records."""
        return {
            "views": list(self.views),
            "originals": {name: list(each) for name, each in self.originals.items()},
            "rewritten": {name: list(each) for name, each in self.rewritten.items()},
        }

    @classmethod
    def from_note(cls, note: dict[str, Any]) -> "AppliedAdvice":
        """Return the advice that a note records."""
        originals, rewritten = (
            {name: tuple(each) for name, each in note[key].items()}
            for key in ("originals", "rewritten")
        )
        return cls(tuple(note["views"]), originals, rewritten)


def _fingerprint(program: Program) -> str:
    return hashlib.blake2b(print_program(program).encode(), digest_size=8).hexdigest()


def apply(database: Database, advice: Advice, before: Program, after: Program) -> Transaction:
    """Replace the program of a database by the one that follows advice.

    Args:
        database: the database.
        advice: the advice.
        before: the program that the advice is for.
        after: the program that follows it.

    Raises:
        InputError: the database has another program than the one that the advice is for.
    """
    changed = {name: each for name, each in advice.predicates.items() if each.is_applicable}
    new = AppliedAdvice(
        tuple(name for view in advice.views.values() for name in view.relations),
        {name: _clause_texts(before, name) for name in changed},
        {name: tuple(map(print_clause, each.rewritten)) for name, each in changed.items()},
    )

    def edit(program: Program) -> Program:
        if _fingerprint(program) != _fingerprint(before):
            raise InputError.of(
                "C1103",
                "The database has another program than the one that the advice is for.",
                None,
                "ask for advice on the program in force: name the warehouse instead of files",
            )
        return after

    transaction = database.transaction()
    transaction.edit(edit)
    applied = _read_notes(database)
    _write_notes(database, [*applied, new])
    try:
        transaction.commit()
    except BaseException:
        _write_notes(database, applied)
        raise
    return transaction


def revert(database: Database) -> tuple[AppliedAdvice, Transaction]:
    """Revert the advice that was applied last.

    Raises:
        InputError: no advice is in force, or the rewritten rules have been changed since.
    """
    applied = _read_notes(database)
    if not applied:
        raise InputError.of(
            "C1104",
            "No advice is in force in this database.",
            None,
            "`corollary advise PROGRAM --query q --apply W` puts some into force",
        )
    last = applied[-1]
    transaction = database.transaction()
    transaction.edit(lambda program: _restore_originals(program, last))
    transaction.commit()
    _write_notes(database, applied[:-1])
    return last, transaction


def _restore_originals(program: Program, applied: AppliedAdvice) -> Program:
    """Return a program with the original clauses in place of the rewritten ones.

    Raises:
        InputError: the rewritten clauses have been changed.
    """
    rewritten = {text for texts in applied.rewritten.values() for text in texts}
    dropped = set(applied.views)
    clauses: list[Clause] = []
    found: set[str] = set()
    for clause in program.clauses:
        text = print_clause(clause)
        if text in rewritten:
            for name in {head.relation for head in clause.heads} - found:
                found.add(name)
                clauses += [parse_clause(each, "advice") for each in applied.originals[name]]
        elif not {head.relation for head in clause.heads} & dropped:
            clauses.append(clause)
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
        clauses=tuple(clauses),
        declarations=tuple(each for each in program.declarations if each.name not in dropped),
    )


def _clause_texts(program: Program, name: str) -> tuple[str, ...]:
    """Return the clauses of a predicate, without the heads of other predicates."""
    return tuple(
        print_clause(replace(clause, heads=tuple(h for h in clause.heads if h.relation == name)))
        for clause in program.clauses
        if clause.body and any(head.relation == name and not head.sign for head in clause.heads)
    )


def _read_notes(database: Database) -> list[AppliedAdvice]:
    """Return the advice that is in force, the oldest first."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return []
    known = {each.name for each in database.program.declarations}
    notes = map(AppliedAdvice.from_note, read_advice(warehouse.catalog))
    return [each for each in notes if set(each.views) <= known]


def _write_notes(database: Database, applied: list[AppliedAdvice]) -> None:
    warehouse = warehouse_of(database)
    if warehouse is not None:
        write_advice(warehouse.catalog, [each.as_note() for each in applied])
