"""A lease on all data files while a warehouse is copied: an intent with a prefix of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog

COPY = "copy-"
"""The prefix of such an intent; as long as there is one, `gc` removes no file."""


def is_held(connection: sa.Connection) -> bool:
    """Return whether a process copies files, so that none may be removed."""
    query = sa.select(schema.intents.c.id).where(schema.intents.c.id.startswith(COPY))
    return connection.execute(query.limit(1)).first() is not None


@contextmanager
def held(catalog: Catalog) -> Iterator[Callable[[], None]]:
    """Keep all files from being removed; gives a heartbeat, to be called from time to time."""
    intent = catalog.intend(COPY)
    try:
        yield catalog.heartbeat(intent)
    finally:
        catalog.forget(intent)
