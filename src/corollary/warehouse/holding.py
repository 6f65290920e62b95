"""Files that stay while a warehouse is copied: who copies leaves an intent of a kind of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.heartbeat import heartbeat

COPY = "copy-"
"""Begins such an intent; as long as there is one, `gc` removes no file."""


def is_held(connection: sa.Connection) -> bool:
    """Return whether somebody copies files, so that none may go."""
    query = sa.select(schema.intents.c.id).where(schema.intents.c.id.startswith(COPY))
    return connection.execute(query.limit(1)).first() is not None


@contextmanager
def held(catalog: Catalog) -> Iterator[Callable[[], None]]:
    """Let no file be removed meanwhile; gives a sign of life, to be shown from time to time."""
    intent = catalog.intend(COPY)
    try:
        yield heartbeat(catalog, intent)
    finally:
        catalog.forget(intent)
