"""What the commands of upkeep share: a warehouse that is not opened as a database, and sizes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from corollary.cli.tables import table, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corollary.warehouse.warehouse import Warehouse

UNITS = ("B", "KB", "MB", "GB", "TB")


@contextmanager
def kept(place: str) -> Iterator["Warehouse"]:
    """Give the files and the catalog of a warehouse; no relation is read.

    Raises:
        WarehouseError: there is none.
    """
    from corollary.warehouse.warehouse import Warehouse

    warehouse = Warehouse.open(place, create=False)
    try:
        yield warehouse
    finally:
        warehouse.close()


def size(count: int) -> str:
    """Return a number of bytes as text.

    >>> size(999), size(34542), size(2_500_000)
    ('999 B', '34.5 KB', '2.5 MB')
    """
    number, unit = float(count), 0
    while number >= 999.5 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else f"{count} B"


def lines(header: "Sequence[str]", rows: "Sequence[Sequence[str]]") -> list[str]:
    """Return the lines of a table."""
    return table(header, [[[cell] for cell in row] for row in rows], width())
