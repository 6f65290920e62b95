"""The relations that a client may see, as the service lists them."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from corollary.core.program import RelationKind
from corollary.data_class import dataclass
from corollary.frontends.sql.catalog import SqlCatalog, TableDefinition
from corollary.frontends.sql.query_tree import QueryColumn
from corollary.serve.type_texts import parse_type

TEMPORARY_SCHEMA = "pg_temp"
STATEMENTS_MAX = 512
"""The number of statements that are kept for one client."""


@dataclass(frozen=True, slots=True)
class VisibleRelation:
    """A relation.

    Attributes:
        kind: base, derived or virtual.
        tuples: how many there are; None if that is not known.
        key: the columns whose values tell its tuples apart, if it has a key.
        definition: the statement in SQL that defines it, for who may see that.
    """

    name: str
    columns: tuple[QueryColumn, ...]
    kind: str
    tuples: int | None = None
    key: tuple[str, ...] = ()
    definition: str | None = None

    @property
    def is_base(self) -> bool:
        """Whether it can be written to."""
        return self.kind == RelationKind.BASE


class VisibleRelations(Mapping[str, VisibleRelation]):
    """Relations by their names, in which case does not matter.

    Attributes:
        statements: the statements that were read for these relations, by their texts.
        temporary: the relations of temporary tables, by the names that statements give these.
    """

    def __init__(
        self,
        relations: Iterable[VisibleRelation] = (),
        temporary: Mapping[str, str] | None = None,
    ) -> None:
        self._found = {each.name.lower(): each for each in relations}
        self.temporary = temporary or {}
        self.statements: OrderedDict[object, Any] = OrderedDict()

    def remember(self, key: object, statement: Any) -> None:
        """Keep a statement, and forget the one that was used longest ago."""
        self.statements[key] = statement
        if len(self.statements) > STATEMENTS_MAX:
            self.statements.popitem(last=False)

    def recall(self, key: object) -> Any:
        """Return a statement that was read; None if it was not."""
        found = self.statements.get(key)
        if found is not None:
            self.statements.move_to_end(key)
        return found

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "VisibleRelations":
        """Return the relations of an answer to a `RelationsRequest`."""
        return cls(
            VisibleRelation(
                each["name"],
                tuple(
                    QueryColumn(column["name"], parse_type(column["type"]))
                    for column in each["columns"]
                ),
                each["kind"],
                each["tuples"],
                tuple(each.get("key") or ()),
                each.get("definition"),
            )
            for each in document["relations"]
        )

    def __getitem__(self, name: str) -> VisibleRelation:
        return self._found[name.lower()]

    def __iter__(self) -> Any:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @cached_property
    def sql_catalog(self) -> SqlCatalog:
        """The relations as the binder of SQL looks them up."""
        return SqlCatalog(TableDefinition(each.name, each.columns) for each in self.values())

    def shape(self) -> tuple[object, ...]:
        """Return what tells two programs apart: all but the numbers of tuples."""
        return tuple(
            (each.name, each.columns, each.kind, each.key, each.definition)
            for each in self.values()
        )
