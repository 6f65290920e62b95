"""INSERT of plain values, such as `INSERT INTO t VALUES (:p1, :p2)`, whose text was read before.

Values that are of the kind of their columns are rows as they are: nothing has to be bound, planned
or computed. What converts a value, or computes one, is not remembered.
"""

from collections.abc import Mapping
from typing import Any

from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.names import writable_relation
from corollary.frontends.sql.catalog import SqlCatalog
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.owners import visible_catalog
from corollary.frontends.sql.statements.shapes import (
    SHAPE_MAX_CHARS,
    parameter_type,
    values_of_parameters,
)

INSERTS_MAX = 256
"""So many texts are kept for one program."""


@dataclass(frozen=True, slots=True)
class _PlainInsert:
    """An INSERT of rows: for each column the parameter that has its value, None for null.

    Attributes:
        kinds: those of the parameters; with other ones the text has to be read again.
    """

    relation: str
    rows: tuple[tuple[str | None, ...], ...]
    kinds: Mapping[str, Kind]


def remember_insert(
    loaded: LoadedProgram, text: str, statement: nodes.Insert, parameters: Mapping[str, Any]
) -> None:
    """Remember an INSERT that has no error, if it has nothing but parameters."""
    found = _plain_insert(loaded, visible_catalog(loaded.program), statement, parameters)
    if found is None or len(text) > SHAPE_MAX_CHARS:
        return
    if len(loaded.inserts) >= INSERTS_MAX:
        loaded.inserts.clear()
    loaded.inserts[text] = found


def known_insert(
    loaded: LoadedProgram, text: str, parameters: Mapping[str, Any]
) -> tuple[str, list[tuple[Any, ...]]] | None:
    """Return the relation and the rows of an INSERT that is remembered; None if it is not."""
    known: _PlainInsert | None = loaded.inserts.get(text)
    if known is None:
        return None
    for name, kind in known.kinds.items():
        type_ = parameter_type(parameters.get(name))
        if type_ is None or type_.kind is not kind:
            return None
    rows = [tuple(None if name is None else parameters[name] for name in row) for row in known.rows]
    return known.relation, rows


def _plain_insert(
    loaded: LoadedProgram,
    catalog: SqlCatalog,
    statement: nodes.Insert,
    parameters: Mapping[str, Any],
) -> _PlainInsert | None:
    (table,) = catalog.find(statement.table.text)
    relation = writable_relation(loaded.normal, table.relation, None)
    given = values_of_parameters(statement.query)
    names = [column.name.lower() for column in table.columns]
    targets = [names.index(each.text.lower()) for each in statement.columns]
    if given is None or len(table.columns) != relation.arity:
        return None
    rows, kinds = [], {}
    for cells in given:
        named = dict(zip(targets or range(len(cells)), cells, strict=True))
        for at, name in named.items():
            if not _fits(parameters.get(name), relation, at):
                return None
            kinds[name] = relation.types[at].kind
        rows.append(tuple(named.get(at) for at in range(relation.arity)))
    return _PlainInsert(table.relation, tuple(rows), kinds)


def _fits(value: object, relation: Relation, at: int) -> bool:
    """Return whether a value of this kind is stored as it is in a column."""
    type_: Type | None = parameter_type(value)
    return type_ is not None and type_.kind is relation.types[at].kind
