"""Scratch databases: in memory, with the program and the base tuples of another database."""

from typing import TYPE_CHECKING

from corollary.active.normal_form import without_active_rules
from corollary.core.printer import print_program, print_relation
from corollary.core.program import Program
from corollary.database.database import Database, state_of
from corollary.database.opening import open_database
from corollary.database.options import LOCAL

if TYPE_CHECKING:
    import pyarrow as pa


def read_base_tables(database: Database) -> "dict[str, pa.Table]":
    """Return the base tuples of a database, by declared relation."""
    normal = state_of(database).loaded.normal
    found = {}
    for name, relation in normal.relations.items():
        base = normal.bases.get(name, name)
        is_bag = name in normal.bags  # its counts are a relation of their own
        if relation.is_declared and not is_bag and not normal.relations[base].is_derived:
            found[name] = state_of(database).engine.read(base)
    return found


def open_scratch_database(
    program: Program,
    tables: "dict[str, pa.Table]",
    *,
    engine: str = LOCAL,
    before: Program | None = None,
) -> Database:
    """Return a database in memory with some tuples and a program without its active rules.

    Args:
        program: the program.
        tables: the tuples of its base relations.
        engine: `local` or `spark`.
        before: the program under which the tuples are inserted, if it is another one.
    """
    database = open_database(None, engine=engine)
    database.load(text=print_program(without_active_rules(before or program)))
    with database.transaction() as transaction:
        for name, table in tables.items():
            if table.num_rows:
                transaction.insert(name, table)
    if before is not None:
        database.load(text=print_program(without_active_rules(program)))
    return database


def full_goal(database: Database, name: str) -> str:
    """Return the goal for all tuples of a relation."""
    arity = state_of(database).loaded.normal.relations[name].arity
    return f"{print_relation(name)}({', '.join(f'v{at}' for at in range(arity))})"
