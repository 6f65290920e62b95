"""Changes the columns of a base relation in one commit, and keeps the data.

the new program → a database in memory with all base tuples, converted → a commit of what differs

All derived relations are computed again, whether the program in force is edited or a new one is
given; only those that differ are recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from corollary.core.printer import print_clause, print_declaration
from corollary.core.program import Declaration, NormalProgram, Program, Relation
from corollary.data_class import dataclass
from corollary.database.commit import retry_on_conflict
from corollary.database.database import Database, state_of, warehouse_store_of
from corollary.database.program.loaded_program import LoadedProgram, load_program
from corollary.database.program.names import readable_relation
from corollary.database.program.places import stored_program
from corollary.database.program.program_edits import stored_shape
from corollary.database.reactions.reactions import ExistingViolations
from corollary.database.state import DatabaseState
from corollary.database.upkeep import column_mapping
from corollary.database.upkeep.program_edit import edit_declaration, edit_program
from corollary.database.upkeep.rebuild import base_tuples, rebuild, written_relations
from corollary.database.writing.operations import Operation
from corollary.database.writing.quarantine import with_same_quarantine
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.copies import count_copies
from corollary.warehouse.set_difference import difference
from corollary.warehouse.sources.quarantine import QUARANTINE
from corollary.warehouse.warehouse import RelationDelta, Warehouse


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
    database: Database, alteration: column_mapping.Alteration, program: Program | None = None
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
    state, store = state_of(database), warehouse_store_of(database)
    assert store is not None, "only a durable database can be altered"
    warehouse = store.warehouse
    result = retry_on_conflict(state, store, lambda: _alter(state, warehouse, alteration, program))
    database.refresh()
    store.fold_if_due(state)
    return result


def _alter(
    state: DatabaseState,
    warehouse: Warehouse,
    asked: column_mapping.Alteration,
    program: Program | None,
) -> AlterResult:
    before = state.loaded
    relation = _alterable(before, asked.relation)
    if program is None:
        after, how = _edited(before, relation, asked)
    else:
        after, how = _given(state, relation, asked, program)
    altered = _altered_state(state, after, how)
    changes = dict(_changes(state, altered))
    new = NewCommit(
        parent=state.commits,
        payload=frozenset(),
        stats={},
        program=stored_program(after, altered.loaded.normal),
        dropped=before.checked.signatures.keys() - altered.loaded.checked.signatures.keys(),
    )
    number = warehouse.commit(new, changes)
    (declaration,) = (each for each in after.declarations if each.name == relation.name)
    return AlterResult(
        number,
        relation.name,
        _size(state, relation.name),
        _size(altered, relation.name),
        _counts(changes, altered.loaded.normal),
        print_declaration(declaration),
        tuple(print_clause(each) for each in after.clauses if each not in before.program.clauses),
    )


def _size(state: DatabaseState, name: str) -> int:
    """Return how many tuples a relation has, with their copies."""
    counts = state.loaded.normal.bags.get(name)
    return state.engine.size(name) if counts is None else count_copies(state.engine.handle(counts))


def _alterable(loaded: LoadedProgram, name: str) -> Relation:
    """Return a base relation whose columns may change."""
    relation = readable_relation(loaded.normal, name)
    if name == QUARANTINE.name:
        text, cure = f"The columns of `{name}` are fixed.", "copy it into a relation of your own"
    elif loaded.normal.relations[loaded.normal.bags.get(name, name)].is_derived:
        text = f"`{name}` has rules, which determine its columns."
        cure = "change its declaration and rules in the program, and give it with --program"
    elif name in loaded.normal.bags.values():
        text = f"`{name}` has the counts of a bag, and its columns."
        cure = "alter the bag itself"
    else:
        return relation
    raise InputError.of("C0963", text, None, cure)


# --- the program ---------------------------------------------------------------------------------


def _edited(
    before: LoadedProgram, relation: Relation, asked: column_mapping.Alteration
) -> tuple[Program, column_mapping.ColumnMapping]:
    """Return the program in force with the columns altered."""
    program = before.program
    (declaration,) = (each for each in program.declarations if each.name == relation.name)
    new = edit_declaration(declaration, asked)
    how = column_mapping.map_columns(relation, _shape(program, new), asked)
    return edit_program(program, new, asked, how), how


def _shape(program: Program, declaration: Declaration) -> Relation:
    """Return the relation of a declaration."""
    alone = load_program(Program(types=program.types, declarations=(declaration,)))
    return alone.normal.relations[declaration.name]


def _given(
    state: DatabaseState, relation: Relation, asked: column_mapping.Alteration, program: Program
) -> tuple[Program, column_mapping.ColumnMapping]:
    """Return a program that the user has edited, and how it maps the columns of the relation."""
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
    return program, column_mapping.map_columns(relation, new, asked)


def _refuse_lost(state: DatabaseState, after: NormalProgram, changed: str) -> None:
    """Refuse a program without a relation for tuples that are not facts of the old one."""
    altered = {changed, state.loaded.normal.bags.get(changed)}
    for name in (changed, *written_relations(state)):
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


# --- the data ------------------------------------------------------------------------------------


def _altered_state(
    state: DatabaseState, program: Program, how: column_mapping.ColumnMapping
) -> DatabaseState:
    """Return a state in memory with the new program and all base tuples."""
    return rebuild(
        program,
        _converted_tuples(state, how),
        existing=ExistingViolations.REFUSE,
        limits=state.limits,
        console=state.console,
    )


def _converted_tuples(
    state: DatabaseState, how: column_mapping.ColumnMapping
) -> Iterator[Operation]:
    """Yield the tuples of all parts but the program text, converted."""
    counts = state.loaded.normal.bags.get(how.after.name)
    for given in base_tuples(state):
        table = given.rows
        if given.relation == how.after.name:
            table = how.convert(table)
        elif given.relation == counts:
            old, copies = table.select(range(how.before.arity)), table.columns[-1]
            rows = how.convert(old, has_copies=True)
            table = rows.append_column(_unused(rows.column_names), copies)
        yield replace(given, rows=table)


def _unused(names: Sequence[str]) -> str:
    """Return a name that no column has."""
    return max(names, key=len, default="") + "#"


def _changes(state: DatabaseState, altered: DatabaseState) -> Iterator[tuple[str, RelationDelta]]:
    """Yield what differs between a state and the one that takes its place."""
    before = state.loaded.normal.relations
    for name, relation in altered.loaded.normal.relations.items():
        if not relation.is_stored:
            continue
        now = altered.engine.read(name)
        was = before.get(name)
        if was is None or stored_shape(was) != stored_shape(relation):
            yield name, RelationDelta(now, now.slice(0, 0), is_full=True)
            continue
        added, removed = difference(state.engine.read(name), now)
        if added.num_rows or removed.num_rows:
            yield name, RelationDelta(added, removed)


def _counts(
    changes: Mapping[str, RelationDelta], normal: NormalProgram
) -> dict[str, tuple[int, int]]:
    """Return how many tuples were inserted into and deleted from declared derived relations."""
    return {
        name: (delta.added.num_rows, delta.removed.num_rows)
        for name, delta in changes.items()
        if normal.relations[name].is_declared and normal.relations[name].is_derived
    }
