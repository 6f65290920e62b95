"""The schemas of published tables, as they are and as they would be; nothing is written."""

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from corollary.core.program import Relation
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY
from corollary.warehouse.publishing.delta_schema import directory_name, published_schema
from corollary.warehouse.warehouse_catalog import TABLES_DIRECTORY

TableSchema = list[tuple[str, str]]
"""The columns of a table: names, and types as Delta calls them."""


def present_schema(root: Place, relation: str) -> TableSchema | None:
    """Return the schema of the table of a relation; None if there is none that can be read."""
    directory = root / TABLES_DIRECTORY / directory_name(relation)
    if not (directory / LOG_DIRECTORY).is_dir():
        return None
    try:
        return columns_of_schema(DeltaTable(directory.absolute().as_uri()).schema())
    except (DeltaError, OSError):
        return None


def schema_to_publish(relation: Relation) -> TableSchema:
    """Return the schema that the table of a relation gets."""
    return columns_of_schema(Schema.from_arrow(published_schema(relation)))


def columns_of_schema(schema: Schema) -> TableSchema:
    """Return the columns of a Delta schema; `?` marks those that may be null."""
    return [
        (each.name, f"{getattr(each.type, 'type', each.type)}{'?' if each.nullable else ''}")
        for each in schema.fields
    ]
