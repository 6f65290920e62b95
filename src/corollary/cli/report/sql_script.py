"""A program as a script of SQL, for `show --as sql` and `advise --to FILE.sql`."""

from collections.abc import Sequence

from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import readable_relation
from corollary.frontends.sql.as_sql import SqlDialectName, print_sql, script_of


def sql_script(loaded: LoadedProgram, dialect: str, names: Sequence[str] = ()) -> str:
    """Return the tables and views of a program.

    Args:
        loaded: the program.
        dialect: the engine that is to read them, `spark` or `duckdb`.
        names: the relations that are asked for, with all that they read; all if empty.

    Raises:
        InputError: there is no such relation.
    """
    for name in names:
        readable_relation(loaded.normal, name)
    keys = {each.name: each.key for each in loaded.program.declarations if each.key}
    active = loaded.normal.active
    script = script_of(print_sql(loaded.normal, SqlDialectName(dialect), keys, names))
    if active.rules or active.reactions:
        script += "\n-- active rules, alerts and constraints are left out: they have no view\n"
    return script
