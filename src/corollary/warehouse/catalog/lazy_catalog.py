"""A catalog that is created on the first write.

Until then it is empty and in memory, so that a first run that fails leaves no files. If another
process creates the warehouse meanwhile, that one is read and written from then on: a commit that
began from the empty one gets a conflict, as after any other commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import IN_MEMORY, CatalogConnection


class LazyCatalog(Catalog):
    """The catalog of a warehouse that may not exist yet."""

    def __init__(self, path: Path) -> None:
        super().__init__(IN_MEMORY)
        self._path: Path | None = None  # None: `create` below writes into memory
        self.create()
        self._path = path
        self.location = str(path)  # for messages

    def _materialize(self) -> None:
        """Create the catalog on the disk, or open the one of another process, and switch to it."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WarehouseError.cannot_write(self._path.parent, error) from error
        made = Catalog(str(self._path))
        try:
            made.create()
            made.check_format()
        except BaseException:
            made.close()
            raise
        self.close()
        self._driver, self._idle, self._path = made._driver, made._idle, None  # noqa: SLF001

    @contextmanager
    def read_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        if self._path is not None and self._path.exists():
            self._materialize()
        with super().read_transaction() as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a write transaction, of which there is one at a time."""
        self._materialize()
        with super().write_transaction() as connection:
            yield connection

    @contextmanager
    def outside_transactions(self) -> Iterator[CatalogConnection]:
        """Give a connection for statements that cannot be part of a transaction."""
        self._materialize()
        with super().outside_transactions() as connection:
            yield connection
