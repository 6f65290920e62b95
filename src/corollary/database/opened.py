"""How a database was opened, so that another process can open it too."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Opened:
    """The place and the options of a database that lasts; `reopen` opens it again.

    Attributes:
        place: the directory of the warehouse, or the URL of its catalog.
        options: those of `open_database` that can be pickled.
    """

    place: str
    options: Mapping[str, Any] = field(default_factory=dict)
