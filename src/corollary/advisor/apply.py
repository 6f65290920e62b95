"""Applies advice to a database, and reverts it.

In one transaction the views are declared, built and maintained from then on, and the rewritten
rules replace the originals under the same names. A note in the warehouse records the originals. It
is written before the commit, so that a crash cannot lose it; a note whose views the program does
not have is ignored.

The reformulated program: new views are declared, the clauses of queries rewritten.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from corollary.advisor.advice import Advice, NewView
from corollary.advisor.model.candidates import expand
from corollary.analysis.check import CheckedProgram
from corollary.core.logic import Clause, Literal, Variable
from corollary.core.printer import print_clause, print_program
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.core.syntax import is_bare_word
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.database.database import Database, warehouse_of
from corollary.database.transaction import Transaction
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse_clause

ADVICE_KEY = "advice"
"""The name of the row of notes in the table `meta` of the catalog."""


def reformulate(checked: CheckedProgram, program: Program, advice: Advice) -> Program:
    """Return a program in which queries read the advised views."""
    views = advice.views.values()
    changed = {
        name: each.rewritten for name, each in advice.predicates.items() if each.is_applicable
    }
    clauses = [*_clauses(program, changed), *(rule for view in views for rule in view.clauses)]
    declarations = [
        *program.declarations,
        *(each for view in views for each in _declarations(view, checked)),
    ]
    return replace(program, declarations=tuple(declarations), clauses=tuple(clauses))


def _clauses(program: Program, changed: dict[str, tuple[Clause, ...]]) -> Iterator[Clause]:
    """Yield the clauses; rewritten ones replace the first original clause of their head."""
    done: set[str] = set()
    for clause in program.clauses:
        heads = {head.relation for head in clause.heads if not head.sign}
        if not clause.body or not heads & changed.keys():
            yield clause
            continue
        kept = tuple(head for head in clause.heads if head.relation not in changed)
        if kept:
            yield replace(clause, heads=kept)
        for name in heads & changed.keys():
            if name not in done:
                done.add(name)
                yield from changed[name]


def _declarations(view: NewView, checked: CheckedProgram) -> Iterator[Declaration]:
    """Yield the declarations of a view; its columns have the names of its variables.

    A virtual view is `inline`, so that later advice does not store it. The rows of a summary are
    not: they are computed once for all its measures.
    """
    measures = view.node.measures or ()
    groups = view.variables[: len(view.variables) - len(measures)]
    if view.rows is not None:
        columns = _columns(view.rows, view, checked)
        yield Declaration(view.relations[0], columns, storage="virtual")
    columns = _columns(groups, view, checked)
    columns += tuple(
        Column(name, TypeName.of(each.type))
        for name, each in zip(view.variables[len(groups) :], measures, strict=True)
    )
    if view.is_virtual:
        yield Declaration(view.name, columns, storage="virtual", hints=("inline",))
    else:
        yield Declaration(view.name, columns, storage="stored")


def _columns(names: Iterable[str], view: NewView, checked: CheckedProgram) -> tuple[Column, ...]:
    return tuple(
        Column(name if is_bare_word(name) else f"c{at}", _column_type(name, view, checked))
        for at, name in enumerate(names, 1)
    )


def _column_type(name: str, view: NewView, checked: CheckedProgram) -> TypeName:
    """Return the type of a column: a declared subtype, if a column of the variable has one."""
    known = {each.name for each in checked.program.types}
    found: list[tuple[TypeName, Type]] = []
    is_nullable = False
    for leaves in expand(view.node):
        columns = [
            (leaf.relation, at)
            for leaf in leaves
            if isinstance(leaf, Literal)
            for at, slot in enumerate(leaf.slots)
            if isinstance(slot, Variable) and slot.name == name
        ]
        here = [_type_at(relation, at, checked) for relation, at in columns]
        # A variable that occurs twice in a body is tested for null there.
        is_nullable |= len(here) == 1 and here[0][1].nullable
        found += here
    named = next((each for each, _ in found if each.name in known), found[0][0])
    return replace(named, nullable=is_nullable, span=None)


def _type_at(relation: str, at: int, checked: CheckedProgram) -> tuple[TypeName, Type]:
    signature = checked.signatures[relation]
    type_ = signature.types[at]
    if signature.declaration is not None:
        return signature.declaration.columns[at].type, type_
    return TypeName.of(type_), type_


# --- in force ------------------------------------------------------------------------------------


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
    with warehouse.catalog.read_transaction() as connection:
        found = warehouse.catalog.find_meta(connection, ADVICE_KEY)
    notes = map(AppliedAdvice.from_note, json.loads(found) if found else [])
    return [each for each in notes if set(each.views) <= known]


def _write_notes(database: Database, applied: list[AppliedAdvice]) -> None:
    warehouse = warehouse_of(database)
    if warehouse is not None:
        notes = [each.as_note() for each in applied]
        value = json.dumps(notes, ensure_ascii=False) if notes else None
        with warehouse.catalog.write_transaction() as connection:
            warehouse.catalog.replace_meta(connection, ADVICE_KEY, value)
