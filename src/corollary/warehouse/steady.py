"""Reading what others may take away meanwhile: `gc` drops history, a new fold thins older ones out.

Rows of the catalog go first, and the files they name afterwards. So what was read is whole if the
oldest commit is still the same; and a file that is missing is none that has vanished if the catalog
still speaks of the same snapshots and index files.
"""

from collections.abc import Callable
from typing import TypeVar

from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.catalog_reader import CatalogReader

TRIES = 10
"""So often something is read again."""

Found = TypeVar("Found")


def steadily(catalog: CatalogReader, read: Callable[[], Found]) -> Found:
    """Return what is read, in a while in which nothing of it was taken away.

    Args:
        catalog: of the warehouse that is read.
        read: reads from catalog and files; begins anew each time it is called.

    Raises:
        WarehouseError: it cannot be read.
        ConflictError: something was taken away every time.
    """
    for left in reversed(range(TRIES)):
        oldest, folded = catalog.meta("oldest"), catalog.folded_files()
        try:
            found = read()
        except WarehouseError:
            is_same = (oldest, folded) == (catalog.meta("oldest"), catalog.folded_files())
            if is_same or not left:
                raise
        else:
            if oldest == catalog.meta("oldest"):
                return found
    raise ConflictError(
        f"others dropped history {TRIES} times while it was read; nothing was changed\n"
        "  = run this again when `gc` has come to an end"
    )
