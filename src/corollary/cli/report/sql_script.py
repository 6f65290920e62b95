"""A program as a script of SQL, for `show --as sql` and `advise --to FILE.sql`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from corollary.core.program import owner_of, sql_texts
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import readable_relation
from corollary.sqlgen.dialect import DialectName
from corollary.sqlgen.script import SqlStatement, print_sql, script_of


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
    texts = sql_texts(loaded.program) if dialect == DialectName.SPARK else {}
    statements = print_sql(loaded.normal, DialectName(dialect), keys, names)
    script = script_of(_as_written(statements, texts))
    active = loaded.normal.active
    reacting = [rule.head.relation for rule in active.rules]
    reacting += [each.relation for each in active.reactions]
    if any(owner_of(each, texts) is None for each in reacting):
        script += "\n-- active rules, alerts and constraints are left out: they have no view\n"
    return script


def _as_written(
    statements: Iterable[SqlStatement], texts: Mapping[str, str]
) -> Iterator[SqlStatement]:
    """Yield statements, those that the user wrote in SQL as they were written."""
    for each in statements:
        owner = owner_of(each.relation, texts)
        if owner == each.relation:
            yield SqlStatement(owner, texts[owner])
        elif owner is None:
            yield each
