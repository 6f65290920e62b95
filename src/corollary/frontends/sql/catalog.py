"""The relations that a statement may name."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

from corollary.analysis.resolution import resolve_type, resolve_types
from corollary.core.program import Program, owner_of, sql_texts
from corollary.data_class import dataclass
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.source import Span


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A relation as SQL sees it.

    Attributes:
        relation: its name, as it is spelled where it is declared.
        is_bag: whether it has copies of rows.
        keys: the sets of columns, by number, whose values tell its rows apart.
        is_hidden: whether its columns can only be named with its own name, and are not in `*`.
    """

    relation: str
    columns: tuple[QueryColumn, ...]
    is_bag: bool = False
    keys: tuple[frozenset[int], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    is_hidden: bool = False


class SqlCatalog:
    """Relations by their names, in which case does not matter.

    Attributes:
        functions: the `CreateFunction`s that statements have made, by their names in small letters.

    >>> catalog = SqlCatalog([TableDefinition("Orders", ())])
    >>> catalog.find("ORDERS")[0].relation
    'Orders'
    """

    def __init__(self, definitions: Iterable[TableDefinition] = ()) -> None:
        self.functions: dict[str, Any] = {}
        self._definitions: defaultdict[str, list[TableDefinition]] = defaultdict(list)
        for definition in definitions:
            self.add(definition)

    def add(self, definition: TableDefinition) -> None:
        """Add a relation, or replace the one of exactly this name."""
        same = self._definitions[definition.relation.lower()]
        same[:] = [each for each in same if each.relation != definition.relation]
        same.append(definition)

    def remove(self, relation: str) -> None:
        """Take out the relation of exactly this name, if there is one."""
        same = self._definitions[relation.lower()]
        same[:] = [each for each in same if each.relation != relation]

    def find(self, name: str) -> tuple[TableDefinition, ...]:
        """Return the relations whose names differ from this one at most in case."""
        return tuple(self._definitions.get(name.lower(), ()))

    def names(self) -> list[str]:
        """Return the names of all relations, sorted."""
        return sorted(each.relation for same in self._definitions.values() for each in same)

    def copy(self) -> "SqlCatalog":
        """Return another catalog with the same relations."""
        made = SqlCatalog(each for same in self._definitions.values() for each in same)
        made.functions = dict(self.functions)
        return made


def catalog_of(program: Program) -> SqlCatalog:
    """Return the relations that a program declares; subtypes are resolved to primitive types.

    A declaration with an unknown type is left out: the check of the program reports it.
    """
    types = resolve_types(program.types)
    catalog = SqlCatalog()
    for declaration in program.declarations:
        found = [resolve_type(column.type, types) for column in declaration.columns]
        columns = tuple(
            QueryColumn(column.name, type_, column.span)
            for column, type_ in zip(declaration.columns, found, strict=True)
            if type_ is not None
        )
        if len(columns) == len(found):
            names = [column.name for column in columns]
            key = frozenset(names.index(name) for name in declaration.key if name in names)
            catalog.add(
                TableDefinition(
                    declaration.name,
                    columns,
                    is_bag=declaration.is_bag,
                    keys=(key,) if declaration.key else (),
                    span=declaration.span,
                )
            )
    return catalog


def visible_catalog(program: Program) -> SqlCatalog:
    """Return the relations that statements may name: not those that statements have made beside.

    Rules may compute any number, whatever bits a declaration says.
    """
    texts = sql_texts(program)
    owners = {each.name: owner_of(each.name, texts) for each in program.declarations}
    named = tuple(each for each in program.declarations if owners[each.name] in (None, each.name))
    catalog = catalog_of(replace(program, declarations=named))
    if any("FUNCTION" in each[:60].upper() for each in texts.values()):
        from corollary.frontends.sql.statements.functions import functions_of

        catalog.functions = dict(functions_of(program))
    for name in catalog.names():
        if owners[name] is None:
            (found,) = (each for each in catalog.find(name) if each.relation == name)
            plain = tuple(replace(each, type=replace(each.type, bits=0)) for each in found.columns)
            catalog.add(replace(found, columns=plain))
    return catalog
