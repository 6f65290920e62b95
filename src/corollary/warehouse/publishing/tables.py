"""Where the published tables of a warehouse are, and the lock of each."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

from corollary.errors import WarehouseError
from corollary.warehouse.publishing.clean import clean_directory
from corollary.warehouse.publishing.names import directory_name
from corollary.warehouse.publishing.table import Target

TABLES = "tables"
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


class Tables:
    """The directory of all published tables.

    Args:
        root: the directory of the warehouse.
        warehouse: its id.

    Raises:
        WarehouseError: `C0943`, no table can stand there.
    """

    def __init__(self, root: Path, warehouse: str) -> None:
        self.directory = root.absolute() / TABLES
        self.warehouse = warehouse
        if _ESCAPE.search(str(self.directory)):
            raise WarehouseError.of(
                "C0943",
                f"Nothing can be published in `{self.directory}`: `%` is an escape to Delta.",
                None,
                "move the warehouse to a directory without `%` in its name",
            )

    def path(self, relation: str) -> Path:
        """Return the directory of a relation's table."""
        return self.directory / directory_name(relation)

    @contextmanager
    def locked(self, relation: str) -> Iterator[Target]:
        """Give the table of a relation, which no other publisher touches meanwhile."""
        path = self.path(relation)
        with self._locked(path.name):
            yield Target(path, self.warehouse, relation)

    def clean(self, keep_seconds: float) -> list[Path]:
        """Remove files that no version refers to, or none has for so long; return them."""
        removed: list[Path] = []
        for path in sorted(self.directory.iterdir()) if self.directory.exists() else ():
            if path.is_dir():
                with self._locked(path.name.partition(".")[0]):
                    removed += clean_directory(path, self.warehouse, keep_seconds)
        return removed

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        try:
            self.directory.mkdir(exist_ok=True)
            handle = os.open(self.directory / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise WarehouseError.cannot_write(self.directory, error) from error
        try:
            flock(handle, LOCK_EX)
            yield
        except OSError as error:
            raise WarehouseError.cannot_write(error.filename or self.directory, error) from error
        finally:
            os.close(handle)
