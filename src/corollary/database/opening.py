"""Opening databases: those that last in a warehouse, those in memory, and as readers see them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from corollary.console import Console
from corollary.core.engine import Limits
from corollary.core.optimisations import optimisations
from corollary.database.database import Database
from corollary.database.engines import SPARK, made
from corollary.database.frames import Frames
from corollary.database.outlets import Outlets
from corollary.database.reacting import demand_choice
from corollary.database.reader import Reader


@dataclass(frozen=True, slots=True)
class Opening:
    """How a database was opened, so that another process can open it too."""

    place: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def again(self, spark: Any = None) -> Database:
        """Open the database again.

        Args:
            spark: the session that the Spark engine works beside.
        """
        return open_database(self.place, spark=spark, create=False, **self.options)


def open_database(
    path: str | Path | None = None,
    *,
    engine: str = SPARK,
    spark: Any = None,
    placement: str = "auto",
    algorithm: str | Mapping[str, str] = "auto",
    strict: bool = False,
    without: Iterable[str] = (),
    existing: str = "report",
    limits: Limits | None = None,
    console: Console | None = None,
    create: bool = True,
    is_late: bool = False,
    webhooks: Sequence[str] = (),
    alerts: str | Path | None = None,
    log_queries: bool = True,
) -> Database:
    """Open a database: one that lasts in a warehouse, or one in memory.

    Args:
        path: the directory of the warehouse, or the URL of its catalog on PostgreSQL,
            `postgresql://user@host/name?data=DIRECTORY`; None for a database in memory, of which
            nothing is durable.
        engine: `local` or `spark`.
        spark: the session that the Spark engine works beside: it is neither configured nor
            stopped. A local one is started if it is not given, once there is work for it.
        placement: where the Spark engine runs strata: `auto`, `driver`, `tasks` or `sql`.
        algorithm: what maintains views, for all relations or by relation: `auto`, `recompute`,
            `dred`, `pf`, `epf`, `counting` (no recursion) or `ranked`.
        strict: fail rather than recompute in full when an increment turns out too large.
        without: optimisations of monitoring that are left out: `relevance`, `polarity`, `sip`,
            `sharing`, `specialisation` or `minimising`.
        existing: what to do about tuples that violate a new constraint and were there before it:
            `report`, `refuse` or `accept`.
        limits: bounds on every transaction.
        console: where progress is shown; nowhere if it is not given.
        create: whether to make the warehouse if there is none.
        is_late: whether to make it with the first commit only, so that nothing is left behind if
            there is none.
        webhooks: what URLs may begin with that alerts are posted to; none if nothing is given.
        alerts: the directory that the files of alerts may not leave; `alerts` in the warehouse if
            it is not given, or where the process runs for a database in memory.
        log_queries: whether to count in the warehouse which goals are asked, without their values.

    Raises:
        InputError: something is asked for that there is not.
        WarehouseError: the warehouse cannot be read, or has another format.
    """
    options: dict[str, Any] = {
        "engine": engine,
        "placement": placement,
        "algorithm": algorithm,
        "strict": strict,
        "without": tuple(without),
        "existing": existing,
        "limits": limits,
        "webhooks": tuple(webhooks),
        "alerts": None if alerts is None else str(Path(alerts).absolute()),
    }
    make = partial(made, engine, spark, placement)
    frames = Frames(spark)
    database = Database(
        make(),
        algorithm,
        is_strict=strict,
        limits=limits,
        console=console,
        frames=frames,
        without=optimisations(without),
    )
    demand_choice(existing)
    database.existing = existing
    database.outlets = Outlets.of(options["webhooks"], options["alerts"])
    if path is not None:
        from corollary.database.durable import Durable
        from corollary.warehouse.warehouse import Warehouse

        warehouse = Warehouse.open(path, create=create, is_late=is_late)
        database.store = Durable(warehouse, make, frames)
        is_url = "://" in str(path)
        place = str(path) if is_url else str(database.store.warehouse.root.absolute())
        database.opening = Opening(place, options)
        database.store.restore(database)
        if log_queries:
            from corollary.database.queries import QueryLog

            database.query_log = QueryLog(warehouse.catalog)
    return database


def open_as(name: str, path: str | Path | None, **options: Any) -> Reader:
    """Open a warehouse as a reader sees it.

    Args:
        name: of the reader.
        path: the directory of the warehouse, or the URL of its catalog on PostgreSQL.
        options: those of `open_database`; a reader makes no warehouse.

    Raises:
        InputError: it is no name of a reader.
        WarehouseError: there is no warehouse, or it cannot be read.
    """
    database = open_database(path, **{**options, "create": False})
    try:
        return database.reader(name).owning()
    except BaseException:
        database.close()
        raise
