"""A catalog that is created on the first write.

Until then it is empty and in memory, so that a first run that fails leaves no files. If another
process creates the warehouse meanwhile, that one is read and written from then on: a commit that
began from the empty one gets a conflict, as after any other commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import IN_MEMORY, CatalogConnection
from corollary.warehouse.files.places import Place


class LazyCatalog(Catalog):
    """The catalog of a warehouse that does not exist yet.

    Args:
        root: the place of the data files.
        real: the catalog to create.
    """

    def __init__(self, root: Place, real: Catalog) -> None:
        super().__init__(IN_MEMORY)
        self._lock = RLock()
        self._real: Catalog | None = None  # None: `create` below writes into memory
        self.create()
        self._root, self._id, self._real = root, self.meta("id"), real
        self.location = real.location  # for messages

    @property
    def is_file(self) -> bool:
        """Whether it is, or will be, a file of SQLite."""
        return super().is_file if self._real is None else self._real.is_file

    def is_created(self) -> bool:
        """Return whether the warehouse exists by now."""
        with self._lock:
            real = self._real
            if real is None:
                return True
            # To connect to a file would create it.
            is_there = (not real.is_file or Path(real.location).exists()) and real.exists()
            if is_there:
                self._switch(real)
            return is_there

    def _switch(self, real: Catalog) -> None:
        real.check_format()
        super().close()
        self._driver, self._idle, self._real = real._driver, real._idle, None  # noqa: SLF001

    def _create(self) -> None:
        """Create the catalog, unless another process has done so, and switch to it."""
        with self._lock:
            if self._real is None:
                return
            if isinstance(self._root, Path):
                try:
                    self._root.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise WarehouseError.cannot_write(self._root, error) from error
            self._real.create(warehouse_id=self._id)
            self._switch(self._real)

    def close(self) -> None:
        """Close all connections that are not in use."""
        super().close()
        if self._real is not None:
            self._real.close()

    @contextmanager
    def read_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        with self._lock:  # in memory there is one connection
            if not self.is_created():
                with super().read_transaction() as connection:
                    yield connection
                return
        with super().read_transaction() as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a write transaction, of which there is one at a time."""
        self._create()
        with super().write_transaction() as connection:
            yield connection

    @contextmanager
    def outside_transactions(self) -> Iterator[CatalogConnection]:
        """Give a connection for statements that cannot be part of a transaction."""
        self._create()
        with super().outside_transactions() as connection:
            yield connection
