"""Consistent reads without locks, while `gc` drops history and new folds replace older ones.

Both delete rows of the catalog first, and the files that these reference afterwards. So a read is
complete if the oldest commit is the same before and after it; and a missing file is real damage,
not a removal, if the catalog references the same snapshots and index files before and after.
"""

from collections.abc import Callable
from typing import TypeVar

from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.catalog.catalog_reader import CatalogReader

READ_ATTEMPTS = 10

Result = TypeVar("Result")


def read_consistently(catalog: CatalogReader, read: Callable[[], Result]) -> Result:
    """Return the result of a read during which nothing was removed, retrying if needed.

    Args:
        catalog: of the warehouse that is read.
        read: reads from catalog and files; starts from scratch each time it is called.

    Raises:
        WarehouseError: it cannot be read.
        ConflictError: something was removed during every attempt.
    """
    for attempts_left in reversed(range(READ_ATTEMPTS)):
        oldest, folded = catalog.meta("oldest"), catalog.folded_files()
        try:
            found = read()
        except WarehouseError:
            is_same = (oldest, folded) == (catalog.meta("oldest"), catalog.folded_files())
            if is_same or not attempts_left:
                raise
        else:
            if oldest == catalog.meta("oldest"):
                return found
    raise ConflictError(
        f"others dropped history {READ_ATTEMPTS} times while it was read; nothing was changed\n"
        "  = run this again when `gc` has come to an end"
    )
