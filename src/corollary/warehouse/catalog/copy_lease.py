"""A lease on all data files while a warehouse is copied: an intent with a prefix of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import CatalogConnection

COPY_PREFIX = "copy-"
"""The prefix of such an intent; as long as there is one, `gc` removes no file."""


def has_copy_lease(connection: CatalogConnection) -> bool:
    """Return whether a process copies files, so that none may be removed."""
    intents = connection.column("SELECT id FROM corollary_intents")
    return any(each.startswith(COPY_PREFIX) for each in intents)


@contextmanager
def copy_lease(catalog: Catalog) -> Iterator[Callable[[], None]]:
    """Keep all files from being removed; gives a heartbeat, to be called from time to time."""
    intent = catalog.insert_intent(COPY_PREFIX)
    try:
        yield catalog.heartbeat(intent)
    finally:
        catalog.delete_intent(intent)
