"""Files that nobody speaks of: left by writers that have died, and by history that was dropped.

A writer leaves its intent before its first file, and its commit takes the intent away and names the
files in one transaction. So a file that was there before the catalog was read, whose writer is not
under way and which no row names, will never be named.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from corollary.errors import WarehouseError
from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.holding import COPY
from corollary.warehouse.parts import named_parts
from corollary.warehouse.warehouse import DATA

NAMING = {"changes": schema.changes, "snapshots": schema.snapshots, "index": schema.indexes}
"""The tables that name files, by what these are called."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The data files there are, and what the catalog says of them.

    Attributes:
        directories: the directories of all writers that there are.
        sizes: the bytes of each file that is there, by its path in the warehouse.
        named: what each file is that the catalog speaks of.
        writers: the intents of those under way.
    """

    directories: frozenset[str]
    sizes: dict[str, int]
    named: dict[str, str]
    writers: frozenset[str]

    @property
    def in_flight(self) -> set[str]:
        """The files of writers under way."""
        return {path for path in self.sizes if Path(path).parts[1] in self.writers}

    @property
    def is_held(self) -> bool:
        """Whether somebody copies files, so that none may go."""
        return any(writer.startswith(COPY) for writer in self.writers)

    @property
    def loose(self) -> set[str]:
        """The files that nobody speaks of."""
        return self.sizes.keys() - self.named.keys() - self.in_flight


def listing(root: Path, catalog: Catalog) -> Listing:
    """Return the data files of a warehouse, and what the catalog says of them."""
    data = root / DATA
    directories = [each for each in data.iterdir() if each.is_dir()] if data.exists() else []
    sizes: dict[str, int] = {}
    for directory in directories:
        with suppress(FileNotFoundError):  # somebody else tidies up as well
            for path in directory.iterdir():
                with suppress(FileNotFoundError):
                    sizes[str(path.relative_to(root))] = path.stat().st_size
    named: dict[str, str] = {}
    with catalog.reading() as connection:
        for kind, table in NAMING.items():
            rows = connection.execute(sa.select(table.c.path).where(table.c.path.is_not(None)))
            named |= dict.fromkeys((row.path for row in rows), kind)
        named |= {
            part: named[owner] for part, owner in named_parts(root, named.copy(), sizes).items()
        }
        writers = frozenset(connection.execute(sa.select(schema.intents.c.id)).scalars())
    names = frozenset(each.name for each in directories)
    return Listing(names, sizes, named, writers)


def remove(root: Path, found: Listing) -> None:
    """Remove the loose files of a listing, and directories that are empty then.

    Raises:
        WarehouseError: one cannot be removed.
    """
    assert not found.is_held, "somebody copies them"
    try:
        for path in sorted(found.loose):
            (root / path).unlink(missing_ok=True)
        for name in sorted(found.directories - found.writers):
            directory = root / DATA / name
            with suppress(FileNotFoundError):
                if not any(directory.iterdir()):
                    directory.rmdir()
    except OSError as error:
        raise WarehouseError.cannot_write(error.filename or root, error) from error
