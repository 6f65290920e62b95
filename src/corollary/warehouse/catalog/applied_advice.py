"""Records of advice that was applied, so that it can be reverted."""

import json
from typing import Any

import sqlalchemy as sa

from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog

ADVICE_KEY = "advice"
"""The name of their row in the table `meta`."""


def read_advice(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the records, the oldest first."""
    query = sa.select(schema.meta.c.value).where(schema.meta.c.name == ADVICE_KEY)
    with catalog.read_transaction() as connection:
        found = connection.execute(query).scalar()
    notes: list[dict[str, Any]] = json.loads(found) if found else []
    return notes


def write_advice(catalog: Catalog, notes: list[dict[str, Any]]) -> None:
    """Replace the records."""
    with catalog.write_transaction() as connection:
        connection.execute(schema.meta.delete().where(schema.meta.c.name == ADVICE_KEY))
        if notes:
            value = json.dumps(notes, ensure_ascii=False)
            connection.execute(schema.meta.insert().values(name=ADVICE_KEY, value=value))
