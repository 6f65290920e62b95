"""Where alerts may go: what the operator of a process permits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corollary.core.web_address import WebAddress, web_address
from corollary.errors import InputError


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where alerts may go.

    Attributes:
        webhooks: the addresses that the operator permits.
        directory: which the files of alerts may not leave; that of the warehouse if not given.
    """

    webhooks: tuple[WebAddress, ...] = ()
    directory: Path | None = None

    @classmethod
    def of(cls, webhooks: Sequence[str], directory: str | Path | None) -> "Outlets":
        """Return the outlets that somebody has asked for.

        Raises:
            InputError: `C1012`, an entry of the allow-list is no beginning of a URL.
        """
        found = []
        for each in webhooks:
            address = web_address(each)
            if address is None or address.query:
                raise InputError.of(
                    "C1012",
                    f"`{each}` does not say which webhooks are permitted.",
                    None,
                    "write the beginning of their URL, such as `https://hooks.example/team`",
                )
            found.append(address)
        return cls(tuple(found), None if directory is None else Path(directory))
