"""Records of advice that was applied, so that it can be reverted."""

import json
from typing import Any

from corollary.warehouse.catalog.catalog import Catalog

ADVICE_KEY = "advice"
"""The name of their row in the table `meta`."""


def read_advice(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the records, the oldest first."""
    with catalog.read_transaction() as connection:
        found = catalog.find_meta(connection, ADVICE_KEY)
    notes: list[dict[str, Any]] = json.loads(found) if found else []
    return notes


def write_advice(catalog: Catalog, notes: list[dict[str, Any]]) -> None:
    """Replace the records."""
    value = json.dumps(notes, ensure_ascii=False) if notes else None
    with catalog.write_transaction() as connection:
        catalog.replace_meta(connection, ADVICE_KEY, value)
