"""The adapter: what differs from PostgreSQL's."""

from dataclasses import dataclass, field

from dbt.adapters.base.column import Column
from dbt.adapters.base.relation import Policy
from dbt.adapters.capability import CapabilityDict
from dbt.adapters.corollary.columns import sql_type
from dbt.adapters.corollary.connections import CorollaryConnectionManager
from dbt.adapters.postgres.impl import PostgresAdapter
from dbt.adapters.postgres.relation import PostgresRelation


@dataclass
class _Shown(Policy):
    """A relation is called by its name: there is one database, and one schema."""

    database: bool = False
    schema: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class CorollaryRelation(PostgresRelation):
    """A relation of a warehouse."""

    include_policy: Policy = field(default_factory=_Shown)


class CorollaryAdapter(PostgresAdapter):
    """The adapter for `corollary serve --pg-port`."""

    Relation = CorollaryRelation
    ConnectionManager = CorollaryConnectionManager
    CATALOG_BY_RELATION_SUPPORT = False
    _capabilities = CapabilityDict({})

    def _link_cached_database_relations(self, schemas: set[str]) -> None:
        """Nothing is dropped with CASCADE behind dbt's back, so no links are needed."""

    def get_column_schema_from_query(self, sql: str) -> list[Column]:
        """Return the columns of a query, with types that a cast takes."""
        _, cursor = self.connections.add_select_query(sql)
        return [
            self.Column.create(each.name, sql_type(each.type_code, each.precision, each.scale))
            for each in cursor.description
        ]
