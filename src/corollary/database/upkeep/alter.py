"""Changes the columns of a base relation in one commit, and keeps the data.

The program in force is edited, or a new one is given; `database/alterations.py` does the rest.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corollary.core.printer import print_clause, print_declaration
from corollary.core.program import NormalProgram, Program, Relation
from corollary.data_class import dataclass
from corollary.database import alterations
from corollary.database.changes import Changes
from corollary.database.database import Database, state_of
from corollary.database.program import column_mapping
from corollary.database.program.column_edits import edit_declaration, edit_program
from corollary.database.program.column_mapping import Alteration
from corollary.database.program.loaded_program import LoadedProgram, load_program
from corollary.database.state import DatabaseState
from corollary.database.writing.quarantine import with_same_quarantine
from corollary.errors import InputError


@dataclass(frozen=True, slots=True)
class AlterResult:
    """What an alteration did.

    Attributes:
        before: how many tuples the relation had.
        after: how many it has, duplicates merged.
        changes: how many tuples were inserted into and deleted from derived relations.
        declaration: the new declaration, as text.
        rules: the other clauses of the program that are new, as text.
    """

    commit: int
    relation: str
    before: int
    after: int
    changes: Mapping[str, tuple[int, int]]
    declaration: str
    rules: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the result as `alter` prints it."""
        return {
            "commit": self.commit,
            "relation": self.relation,
            "tuples": {"before": self.before, "after": self.after},
            "changes": {
                name: {"added": added, "removed": removed}
                for name, (added, removed) in self.changes.items()
            },
            "declaration": self.declaration,
            "rules": list(self.rules),
        }


def alter(
    database: Database, alteration: Alteration, program: Program | None = None
) -> AlterResult:
    """Change the columns of a base relation.

    Args:
        database: a durable one.
        alteration: if a program is given, its declaration says which columns are added and
            dropped, and this only gives new names and values.
        program: the new program; None to edit the one in force.

    Raises:
        InputError: `C0962` to `C0967`, it is not possible.
        ConstraintError: a key would be violated.
        ConflictError: others committed first every time.
    """
    state = state_of(database)
    sizes: list[int] = []

    def edited(before: LoadedProgram) -> tuple[Program, Alteration]:
        relation = alterations.alterable_relation(before, alteration.relation)
        sizes.append(alterations.row_count(state, relation.name))
        if program is None:
            return _edited(before, relation, alteration), alteration
        return _given(state, relation, alteration, program), alteration

    transaction = database.transaction()
    old = state.program
    transaction.alter(edited)
    transaction.commit()
    new = state.program
    (declaration,) = (each for each in new.declarations if each.name == alteration.relation)
    assert transaction.commit_number is not None
    return AlterResult(
        transaction.commit_number,
        alteration.relation,
        sizes[-1],
        alterations.row_count(state, alteration.relation),
        _counts(transaction.changes, state.loaded.normal),
        print_declaration(declaration),
        tuple(print_clause(each) for each in new.clauses if each not in old.clauses),
    )


# --- the program ---------------------------------------------------------------------------------


def _edited(before: LoadedProgram, relation: Relation, asked: Alteration) -> Program:
    """Return the program in force with the columns altered."""
    program = before.program
    (declaration,) = (each for each in program.declarations if each.name == relation.name)
    new = edit_declaration(declaration, asked)
    shape, _ = alterations.declared_relation(replace(program, declarations=(new,)), relation.name)
    return edit_program(program, new, asked, column_mapping.map_columns(relation, shape, asked))


def _given(
    state: DatabaseState, relation: Relation, asked: Alteration, program: Program
) -> Program:
    """Return a program that the user has edited, if it fits the relation."""
    if asked.add or asked.drop:
        raise column_mapping.alter_error(
            "The new program itself adds and drops columns.", "leave out --add and --drop"
        )
    for name in asked.rename:
        if name not in relation.columns:
            raise column_mapping.alter_error(
                f"`{relation.name}` has no column `{name}`.", "name one that it has"
            )
    program = with_same_quarantine(program, state.program)
    after = load_program(program).normal
    _refuse_lost(state, after, relation.name)
    new = after.relations[relation.name]
    for name in asked.rename.values():
        if name not in new.columns:
            raise column_mapping.alter_error(
                f"The new program gives `{relation.name}` no column `{name}`.",
                "rename to one that it declares",
            )
    return program


def _refuse_lost(state: DatabaseState, after: NormalProgram, changed: str) -> None:
    """Refuse a program without a relation for tuples that are not facts of the old one."""
    altered = {changed, state.loaded.normal.bags.get(changed)}
    for name in (changed, *alterations.written_relations(state)):
        old, new = state.loaded.normal.relations[name], after.relations.get(name)
        if new is None:
            raise InputError.of(
                "C0913",
                f"The new program does not declare `{name}`, which the database holds.",
                None,
                "keep its `.decl`; delete its tuples if it is not needed",
            )
        if name not in altered and (old.columns, old.types) != (new.columns, new.types):
            raise InputError.of(
                "C0967",
                f"The new program changes the columns of `{name}` as well.",
                None,
                "alter one relation after the other",
            )


def _counts(changes: Changes, normal: NormalProgram) -> dict[str, tuple[int, int]]:
    """Return how many tuples were inserted into and deleted from declared derived relations."""
    return {
        name: each.counts
        for name, each in changes.items()
        if normal.relations[name].is_derived and any(each.counts)
    }
