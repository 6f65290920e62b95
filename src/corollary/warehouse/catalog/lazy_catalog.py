"""A catalog that is created on the first write.

Until then it is empty and in memory, so that a first run that fails leaves no files. If another
process creates the warehouse meanwhile, that one is read and written from then on: a commit that
began from the empty one gets a conflict, as after any other commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog


class LazyCatalog(Catalog):
    """The catalog of a warehouse that may not exist yet."""

    def __init__(self, path: Path) -> None:
        super().__init__("sqlite://")
        self._path: Path | None = None  # None: `create` below writes into memory
        self.create()
        self._path = path
        self.url = f"sqlite:///{path}"

    def _materialize(self) -> None:
        """Create the catalog on the disk, or open the one of another process, and switch to it."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WarehouseError.cannot_write(self._path.parent, error) from error
        made = Catalog.from_file(self._path)
        try:
            made.create()
            made.check_format()
        except BaseException:
            made.close()
            raise
        self.close()
        self.url, self._engine, self._path = made.url, made._engine, None  # noqa: SLF001

    @contextmanager
    def read_transaction(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        if self._path is not None and self._path.exists():
            self._materialize()
        with super().read_transaction() as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[sa.Connection]:
        """Give a connection in a write transaction, of which there is one at a time."""
        self._materialize()
        with super().write_transaction() as connection:
            yield connection

    @contextmanager
    def raw_cursor(self) -> Iterator[Any]:
        """Give a cursor of the database driver, outside of any transaction."""
        self._materialize()
        with super().raw_cursor() as cursor:
            yield cursor
