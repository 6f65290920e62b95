"""A catalog that is made when something is first written to it.

Until then it is empty and in memory, so that a first run that fails leaves nothing behind. If
another process makes the warehouse meanwhile, that is the one that is read and written from then
on: a commit that began from the empty one comes too late, as behind any other commit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from corollary.errors import WarehouseError
from corollary.warehouse.catalog import Catalog


class LateCatalog(Catalog):
    """The catalog of a warehouse that may not be there yet."""

    def __init__(self, path: Path) -> None:
        super().__init__("sqlite://")
        self._path: Path | None = None
        self.create()
        self._path = path
        self.url = f"sqlite:///{path}"

    def _make(self) -> None:
        """Be the catalog on the disk from now on."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WarehouseError.cannot_write(self._path.parent, error) from error
        made = Catalog.at(self._path)
        try:
            made.create()
            made.demand_format()
        except BaseException:
            made.close()
            raise
        self.close()
        self.url, self._engine, self._path = made.url, made._engine, None  # noqa: SLF001

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        if self._path is not None and self._path.exists():
            self._make()
        with super().reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that no other writer can get in between."""
        self._make()
        with super().writing() as connection:
            yield connection

    @contextmanager
    def alone(self) -> Iterator[Any]:
        """Give a cursor of the database itself, outside of any transaction."""
        self._make()
        with super().alone() as cursor:
            yield cursor
