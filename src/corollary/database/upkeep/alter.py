"""Other columns of a base relation, in one commit that keeps the data.

the new program → a database in memory with all base tuples, converted → a commit of what differs

Whether the program in force is edited or a new one is given, its relations are derived anew: what
comes out of the same rules as before is not recorded again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from corollary.core.printer import print_clause, print_declaration, print_program
from corollary.core.program import Declaration, NormalProgram, Program, Relation
from corollary.core.states import State
from corollary.database.commit import retry_on_conflict
from corollary.database.database import Database, state_of, warehouse_store_of
from corollary.database.memory_store import MemoryStore
from corollary.database.names import readable
from corollary.database.operations import Operation
from corollary.database.parts import TEXT
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program import Loaded, load
from corollary.database.state import DatabaseState, payload_of
from corollary.database.transaction import Transaction
from corollary.database.upkeep.edit import edited, edited_declaration
from corollary.database.upkeep.reshape import Alteration, Reshape, refused, reshape
from corollary.engines.local.engine import LocalEngine
from corollary.errors import InputError
from corollary.warehouse.entries import NewCommit
from corollary.warehouse.places import places_of
from corollary.warehouse.set_difference import difference
from corollary.warehouse.sources.quarantine import QUARANTINE
from corollary.warehouse.warehouse import Delta, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Altered:
    """What an alteration did.

    Attributes:
        before: how many tuples the relation had.
        after: how many it has, equal ones merged.
        changes: how many tuples came and went in derived relations.
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
        """Return it as `alter` prints it."""
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


def alter(database: Database, asked: Alteration, program: Program | None = None) -> Altered:
    """Change the columns of a base relation.

    Args:
        database: a database that lasts.
        asked: what is to change; with a program, what differs in its declaration of the relation is
            added or dropped, and only new names and values are to be said.
        program: the program from now on; None to edit the one in force.

    Raises:
        InputError: `C0962` to `C0967`, something about it is not acceptable.
        ConstraintError: a key would not hold.
        ConflictError: others commit all the time.
    """
    state, store = state_of(database), warehouse_store_of(database)
    assert store is not None, "a database in memory is loaded again instead"
    warehouse = store.warehouse
    altered = retry_on_conflict(state, store, lambda: _alter(state, warehouse, asked, program))
    database.refresh()
    store.fold_if_due(state)
    return altered


def _alter(
    state: DatabaseState, warehouse: Warehouse, asked: Alteration, program: Program | None
) -> Altered:
    before = state.loaded
    relation = _alterable(before, asked.relation)
    if program is None:
        after, how = _edited(before, relation, asked)
    else:
        after, how = _given(state, relation, asked, program)
    future = _future(state, after, how)
    changes = dict(_changes(state, future))
    new = NewCommit(
        parent=state.commits,
        payload=frozenset(),
        stats={},
        program=(print_program(after), places_of(future.loaded.normal)),
    )
    number = warehouse.commit(new, changes)
    size = state.engine.size(relation.name)
    (declaration,) = (each for each in after.declarations if each.name == relation.name)
    return Altered(
        number,
        relation.name,
        size,
        future.engine.size(relation.name),
        _counts(changes, future.loaded.normal),
        print_declaration(declaration),
        tuple(print_clause(each) for each in after.clauses if each not in before.program.clauses),
    )


def _alterable(loaded: Loaded, name: str) -> Relation:
    """Return a base relation whose columns may change."""
    relation = readable(loaded.normal, name)
    if name == QUARANTINE.name:
        text, cure = f"The columns of `{name}` are fixed.", "copy it into a relation of your own"
    elif relation.is_derived:
        text = f"`{name}` has rules, so its columns are what they say."
        cure = "change its declaration and rules in the program, and give it with --program"
    else:
        return relation
    raise InputError.of("C0963", text, None, cure)


# --- the program ---------------------------------------------------------------------------------


def _edited(before: Loaded, relation: Relation, asked: Alteration) -> tuple[Program, Reshape]:
    """Return the program in force with other columns."""
    program = before.program
    (declaration,) = (each for each in program.declarations if each.name == relation.name)
    new = edited_declaration(declaration, asked)
    how = reshape(relation, _shape(program, new), asked)
    return edited(program, new, asked, how), how


def _shape(program: Program, declaration: Declaration) -> Relation:
    """Return the relation that a declaration makes."""
    alone = load(Program(types=program.types, declarations=(declaration,)))
    return alone.normal.relations[declaration.name]


def _given(
    state: DatabaseState, relation: Relation, asked: Alteration, program: Program
) -> tuple[Program, Reshape]:
    """Return a program that the user has edited, and what it makes of the relation's columns."""
    if asked.add or asked.drop:
        raise refused("The new program says itself which columns come and go.", "leave that out")
    for name in asked.rename:
        if name not in relation.columns:
            raise refused(f"`{relation.name}` has no column `{name}`.", "name one that it has")
    program = _with_quarantine(state.program, program)
    after = load(program).normal
    _refuse_lost(state, after, relation.name)
    new = after.relations[relation.name]
    for name in asked.rename.values():
        if name not in new.columns:
            raise refused(
                f"The new program gives `{relation.name}` no column `{name}`.",
                "rename to one that it declares",
            )
    return program, reshape(relation, new, asked)


def _with_quarantine(before: Program, program: Program) -> Program:
    """Return the program with the relation of malformed records, which users do not declare."""
    known = {each.name for each in program.declarations}
    kept = tuple(
        each
        for each in before.declarations
        if each.name == QUARANTINE.name and each.name not in known
    )
    return replace(program, declarations=(*program.declarations, *kept))


def _refuse_lost(state: DatabaseState, after: NormalProgram, altered: str) -> None:
    """Refuse a program in which tuples that it does not say itself have no place."""
    for name in (altered, *_written(state)):
        old, new = state.loaded.normal.relations[name], after.relations.get(name)
        if new is None:
            raise InputError.of(
                "C0913",
                f"The new program does not declare `{name}`, which the database holds.",
                None,
                "keep its `.decl`; delete its tuples if it is not needed",
            )
        if name != altered and (old.columns, old.types) != (new.columns, new.types):
            raise InputError.of(
                "C0967",
                f"The new program changes the columns of `{name}` as well.",
                None,
                "alter one relation after the other",
            )


def _written(state: DatabaseState) -> Iterator[str]:
    """Yield the relations that have tuples of others than the program text."""
    normal, engine = state.loaded.normal, state.engine
    for name, relation in normal.relations.items():
        held = normal.parts.get(normal.bases.get(name, name), {})
        has_tuples = any(part != TEXT and engine.size(at) for part, at in held.items())
        if relation.is_declared and has_tuples:
            yield name


# --- the data ------------------------------------------------------------------------------------


def _future(state: DatabaseState, program: Program, how: Reshape) -> DatabaseState:
    """Return a database in memory with the new program and all base tuples."""
    alone = load(program).normal
    empty = {
        name: alone.relations[name]
        if name in alone.bases
        else replace(alone.relations[name], is_derived=False)
        for name in _written(state)
    }
    bare = NormalProgram(empty, (), (), {})
    engine = LocalEngine()
    engine.declare({**empty, **payload_of(bare)})
    future = DatabaseState(engine, limits=state.limits, console=state.console)
    future.restore(engine, replace(future.loaded, normal=bare), 0, frozenset())
    operations = list(_operations(state, how))
    transaction = Transaction(future, MemoryStore())
    transaction.set_program(program)
    transaction.read(lambda: DeferredOperations(operations, {}))
    transaction.commit()
    return future


def _operations(state: DatabaseState, how: Reshape) -> Iterator[Operation]:
    """Yield what everybody but the program text has written, converted."""
    normal = state.loaded.normal
    for name in _written(state):
        base = normal.bases.get(name, name)
        for part, at in normal.parts.get(base, {}).items():
            if part != TEXT:
                table = state.engine.read(at)
                rows = how.table(table) if name == how.after.name else table
                yield Operation(State.ADDED, name, rows, part)


def _changes(state: DatabaseState, future: DatabaseState) -> "Iterator[tuple[str, Delta]]":
    """Yield what differs between a database and the one that takes its place."""
    before = state.loaded.normal.relations
    for name, relation in future.loaded.normal.relations.items():
        if not relation.is_stored:
            continue
        now: pa.Table = future.engine.read(name)
        was = before.get(name)
        is_alike = was is not None and _form(was) == _form(relation)
        if not is_alike:
            yield name, Delta(now, now.slice(0, 0), is_full=True)
            continue
        added, removed = difference(state.engine.read(name), now)
        if added.num_rows or removed.num_rows:
            yield name, Delta(added, removed)


def _form(relation: Relation) -> tuple[Any, ...]:
    return relation.columns, relation.types, relation.is_virtual


def _counts(changes: Mapping[str, Delta], normal: NormalProgram) -> dict[str, tuple[int, int]]:
    """Return how many tuples came and went in derived relations that users know."""
    return {
        name: (delta.added.num_rows, delta.removed.num_rows)
        for name, delta in changes.items()
        if normal.relations[name].is_declared and normal.relations[name].is_derived
    }
