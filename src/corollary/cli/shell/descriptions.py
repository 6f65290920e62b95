r"""What `\d` shows: the relations of a database, and one of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corollary.cli.report.tables import align
from corollary.core.printer import print_clause, print_declaration, print_reaction
from corollary.database.database import Database, state_of
from corollary.database.program.names import readable_relation

if TYPE_CHECKING:
    from corollary.core.program import NormalProgram


def relation_lines(database: Database) -> Iterator[str]:
    """Yield a line for each relation that users have defined."""
    from corollary.core.program import sql_texts

    loaded = state_of(database).loaded
    texts = sql_texts(loaded.program)
    rows = [
        (name, _kind(loaded.normal, name), _size(database, name), "SQL" * (name in texts))
        for name in loaded.normal.declared_relations
    ]
    if rows:
        yield from align([("relation", "kind", "tuples", ""), *sorted(rows)])


def _kind(normal: "NormalProgram", name: str) -> str:
    words = {"base": "base", "derived": "stored view", "virtual": "view"}
    return words[normal.kind_of(name)] + ", copies" * (name in normal.bags)


def _size(database: Database, name: str) -> str:
    state = state_of(database)
    holder = state.loaded.normal.holder_of(name)
    return f"{state.engine.size(holder.name):,}" if holder.is_stored else ""


def description_lines(database: Database, name: str) -> Iterator[str]:
    """Yield the columns of a relation, and what defines it: its SQL, or its rules.

    Raises:
        InputError: there is no such relation.
    """
    from corollary.core.program import sql_texts

    loaded = state_of(database).loaded
    known = {each.lower(): each for each in loaded.normal.relations}
    relation = readable_relation(loaded.normal, known.get(name.lower(), name))
    yield from align(
        (column, str(type_)) for column, type_ in zip(relation.columns, relation.types, strict=True)
    )
    text = sql_texts(loaded.program).get(relation.name)
    yield ""
    if text is not None:
        yield from text.splitlines()
        return
    defined = {relation.name, loaded.normal.holder_of(relation.name).name}
    for declaration in loaded.program.declarations:
        if declaration.name == relation.name:
            yield print_declaration(declaration)
    for clause in loaded.program.clauses:
        if clause.body and any(head.relation in defined for head in clause.heads):
            yield print_clause(clause)
    for reaction in loaded.program.reactions:
        if reaction.relation == relation.name:
            yield print_reaction(reaction)
