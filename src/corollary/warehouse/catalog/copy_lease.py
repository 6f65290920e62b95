"""A lease on all data files while a warehouse is copied: an intent with a prefix of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog

COPY_PREFIX = "copy-"
"""The prefix of such an intent; as long as there is one, `gc` removes no file."""


def has_copy_lease(connection: sa.Connection) -> bool:
    """Return whether a process copies files, so that none may be removed."""
    query = sa.select(schema.intents.c.id).where(schema.intents.c.id.startswith(COPY_PREFIX))
    return connection.execute(query.limit(1)).first() is not None


@contextmanager
def copy_lease(catalog: Catalog) -> Iterator[Callable[[], None]]:
    """Keep all files from being removed; gives a heartbeat, to be called from time to time."""
    intent = catalog.insert_intent(COPY_PREFIX)
    try:
        yield catalog.heartbeat(intent)
    finally:
        catalog.delete_intent(intent)
