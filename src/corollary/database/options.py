"""How a database is opened."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from corollary.core.engine import Limits
from corollary.data_class import dataclass

LOCAL, SPARK = "local", "spark"
PROBING = "probing"
"""The engine of processes that only read beside one with Spark."""
SEQUENTIAL = "sequential"
"""The engine for upkeep of what is in partitions: it reads one after the other, without Spark."""
PLACEMENTS = ("auto", "driver", "partitions")
ENGINES = (LOCAL, SPARK)


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """The options of a database; `open_database` says what each one means.

    They can be pickled and written as JSON, so that another process can open the same database.
    """

    engine: str = SPARK
    placement: str = "auto"
    driver_memory: int | str | None = None
    bulk: str | None = None
    algorithm: str | Mapping[str, str] = "auto"
    strict: bool = False
    without: tuple[str, ...] = ()
    existing: str = "report"
    limits: Limits | None = None
    webhooks: tuple[str, ...] = ()
    alerts: str | None = None
    log_queries: bool = True
    functors: tuple[str, ...] = ()
    publish: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the options as `from_json` reads them.

        >>> options = DatabaseOptions(without=("sip",), limits=Limits(rounds=3))
        >>> DatabaseOptions.from_json(options.as_json()) == options
        True
        """
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "DatabaseOptions":
        """Return the options of a document, in which sequences are lists."""
        options: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in document.items()
        }
        limits = options.pop("limits", None)
        return cls(**options, limits=None if limits is None else Limits(**limits))


IN_PROCESS = DatabaseOptions(LOCAL)
"""Those of the local engine."""
