"""How far the reading of a file has come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(slots=True)
class ReadProgress:
    """What has been read of a file so far.

    Attributes:
        file: the name of the file in messages.
        show: called after each block.
        total_bytes: the size of the file, if it is known.
        read_bytes: how many of these bytes have been read.
        rows: the rows that have been made of them.
    """

    file: str
    show: "ShowProgress | None" = None
    total_bytes: int | None = None
    read_bytes: int = 0
    rows: int = 0

    def note_bytes(self, read_bytes: int) -> None:
        """Note how many bytes have been read in all."""
        self.read_bytes = read_bytes

    def note_rows(self, rows: int) -> None:
        """Note more rows, and show how far the reading has come."""
        self.rows += rows
        if self.show is not None:
            self.show(self)

    def __str__(self) -> str:
        r"""Return the amounts as a text.

        >>> str(ReadProgress("p.csv", None, 2_000_000, 500_000, 12_345))
        '12,345 rows, 0.5 of 2.0 MB'
        """
        megabytes = f"{self.read_bytes / 1e6:,.1f}"
        if self.total_bytes is not None:
            megabytes = f"{megabytes} of {self.total_bytes / 1e6:,.1f}"
        return f"{self.rows:,} rows, {megabytes} MB"


ShowProgress: TypeAlias = Callable[[ReadProgress], None]
"""Shows how far the reading of a file has come."""
