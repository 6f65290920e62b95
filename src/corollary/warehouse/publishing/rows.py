"""Relations in the clothes of Delta.

| type | Delta |
|---|---|
| unsigned | decimal(20,0), as Delta has no unsigned integers |
| the rest | as it is: string, long, double, decimal(p,s), boolean, date, timestamp |
| no columns | a column `holds`, with one row that says true, or none |
"""

import pyarrow as pa

from corollary.core.arrow import schema_of
from corollary.core.program import Relation
from corollary.warehouse.files import checksum_of
from corollary.warehouse.publishing.names import column_names

HOLDS = "holds"
UNSIGNED = pa.decimal128(20, 0)


def published_schema(relation: Relation) -> pa.Schema:
    """Return the schema of a relation's table."""
    if not relation.arity:
        return pa.schema([pa.field(HOLDS, pa.bool_(), nullable=False)])
    return pa.schema(
        pa.field(name, UNSIGNED if field.type == pa.uint64() else field.type, field.nullable)
        for name, field in zip(column_names(relation.columns), schema_of(relation), strict=True)
    )


def columns_digest(schema: pa.Schema) -> str:
    """Return what tells a table's columns from others: names, types, and which may be null."""
    return checksum_of(str(schema.remove_metadata()).encode())


def published_rows(table: pa.Table, relation: Relation) -> pa.Table:
    """Return the rows of a relation as its table has them."""
    schema = published_schema(relation)
    if not relation.arity:
        return pa.table({HOLDS: pa.array([True] * table.num_rows, pa.bool_())}, schema=schema)
    return table.rename_columns(schema.names).cast(schema)
