"""Opens databases: in a warehouse, in memory, or as a reader sees them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

from corollary.console import Console
from corollary.core.engine import Limits
from corollary.core.monitoring_optimisations import parse_optimisations
from corollary.core.user_functors.loading import load_functors
from corollary.database.alerts.delivery import Outlets
from corollary.database.arguments import PATH, TEXTS, checked
from corollary.database.database import Database
from corollary.database.engines import SparkFrames, create_engine
from corollary.database.options import SPARK, DatabaseOptions
from corollary.database.publishing import PublishTime
from corollary.database.reactions.reactions import ExistingViolations
from corollary.database.reading.reader import Reader
from corollary.database.state import DatabaseState
from corollary.database.store import OpenArguments


@overload
def open_database(
    path: str | Path | None = None,
    *,
    reader: None = None,
    engine: str = SPARK,
    spark: Any = None,
    placement: str = "auto",
    driver_memory: int | str | None = None,
    bulk: str | None = None,
    algorithm: str | Mapping[str, str] = "auto",
    strict: bool = False,
    without: Iterable[str] = (),
    existing: str = "report",
    limits: Limits | None = None,
    console: Console | None = None,
    create: bool = True,
    webhooks: Sequence[str] = (),
    alerts: str | Path | None = None,
    log_queries: bool = True,
    functors: str | Path | Sequence[str | Path] = (),
    publish: str | None = None,
) -> Database: ...


@overload
def open_database(
    path: str | Path,
    *,
    reader: str,
    engine: str = SPARK,
    spark: Any = None,
    placement: str = "auto",
    driver_memory: int | str | None = None,
    bulk: str | None = None,
    limits: Limits | None = None,
    console: Console | None = None,
    log_queries: bool = True,
    functors: str | Path | Sequence[str | Path] = (),
) -> Reader: ...


@checked(
    path=PATH,
    reader=str,
    engine=str,
    placement=str,
    driver_memory=(int, str),
    bulk=str,
    algorithm=(str, Mapping),
    strict=bool,
    without=TEXTS,
    existing=str,
    limits=Limits,
    create=bool,
    webhooks=TEXTS,
    alerts=PATH,
    log_queries=bool,
    publish=str,
)
def open_database(
    path: str | Path | None = None,
    *,
    reader: str | None = None,
    engine: str = SPARK,
    spark: Any = None,
    placement: str = "auto",
    driver_memory: int | str | None = None,
    bulk: str | None = None,
    algorithm: str | Mapping[str, str] = "auto",
    strict: bool = False,
    without: Iterable[str] = (),
    existing: str = "report",
    limits: Limits | None = None,
    console: Console | None = None,
    create: bool = True,
    webhooks: Sequence[str] = (),
    alerts: str | Path | None = None,
    log_queries: bool = True,
    functors: str | Path | Sequence[str | Path] = (),
    publish: str | None = None,
) -> Database | Reader:
    """Open a database in a warehouse, or, with `open(None)`, in memory.

    Args:
        path: the directory of the warehouse, or the URL of its catalog on PostgreSQL,
            `postgresql://user@host/name?data=PLACE`, with a directory or an object store such as
            `s3://bucket/name`; None for a database in memory, of which nothing is durable.
        reader: the name of a reader: the database is opened as that reader sees it, limited to
            what was granted to it.
        engine: `local` or `spark`.
        spark: the session that the Spark engine uses: it is neither configured nor stopped. If
            it is not given, a local one is started once there is work for it.
        placement: where the Spark engine runs strata: `auto`, `driver` or `partitions`;
            with this one all relations are in partitions outside of the driver.
        driver_memory: how much memory relations may take on the driver, in bytes or as a text such
            as `2G`; with the placement `auto`, the largest ones beyond that are partitioned. If it
            is not given, the environment variable `COROLLARY_DRIVER_MEMORY` decides; without that
            it is a quarter of the machine's memory.
        bulk: whether DuckDB computes steps that read whole relations: `auto` if they are large,
            `always` wherever it is exact, `never`. If it is not given, the environment variable
            `COROLLARY_BULK` decides; without that it is `auto`.
        algorithm: what maintains views, for all relations or by relation: `auto`, `recompute`,
            `dred`, `pf`, `epf`, `counting` (no recursion) or `ranked`.
        strict: fail rather than recompute in full when an increment turns out too large.
        without: optimisations of monitoring that are left out: `relevance`, `polarity`, `sip`,
            `sharing`, `specialisation` or `minimising`.
        existing: what to do about tuples that violate a new constraint and were there before it:
            `report`, `refuse` or `accept`.
        limits: bounds on every transaction.
        console: where progress is shown; nowhere if it is not given.
        create: whether to create the warehouse, with the first write, if there is none; reading
            it before that is an error. If not, opening it is. A reader never creates one.
        webhooks: the permitted beginnings of URLs that alerts are posted to; none by default.
        alerts: the directory that the files of alerts may not leave; `alerts` in the warehouse if
            it is not given, or where the process runs for a database in memory.
        log_queries: whether to count in the warehouse which goals are asked, without their values.
        functors: Python files or modules that register functors with `corollary.functor`. They are
            run here, with all rights of this process, and on Spark in tasks: name only code that
            you trust. A warehouse never names any itself.
        publish: when the tables of `.output` relations are brought forward: with every `commit`;
            `1s`, with a commit, but at most once a second, and when the database is closed; or
            `manual`, when `publish` is called. If it is not given, `run` publishes, and other
            transactions do if they are asked to.

    Raises:
        InputError: there is no such engine, algorithm, optimisation or choice, or no function for
            a functor of its program.
        WarehouseError: the warehouse cannot be read, or has another format.
    """
    options = DatabaseOptions(
        engine=engine,
        placement=placement,
        driver_memory=driver_memory,
        bulk=bulk,
        algorithm=algorithm,
        strict=strict,
        without=tuple(without),
        existing=existing,
        limits=limits,
        webhooks=tuple(webhooks),
        alerts=None if alerts is None else str(Path(alerts).absolute()),
        log_queries=log_queries,
        functors=load_functors(functors),
        publish=publish,
    )
    is_created = create and reader is None
    database = open_with(path, options, spark=spark, console=console, create=is_created)
    if reader is None:
        return database
    try:
        return database.reader(reader, owns=True)
    except BaseException:
        database.close()
        raise


def open_with(
    path: str | Path | None,
    options: DatabaseOptions,
    *,
    spark: Any = None,
    console: Console | None = None,
    create: bool = True,
) -> Database:
    """Open a database with options; see `open_database`."""
    load_functors(options.functors)
    new_engine = partial(
        create_engine, options, spark, scratch=None if path is None else _scratch_directory(path)
    )
    frames = SparkFrames(spark)
    state = DatabaseState(
        new_engine(),
        options.algorithm,
        is_strict=options.strict,
        limits=options.limits,
        console=console,
        frames=frames,
        without=parse_optimisations(options.without),
    )
    existing = ExistingViolations.of(options.existing)
    outlets = Outlets.of(options.webhooks, options.alerts)
    when = None if options.publish is None else PublishTime.of(options.publish)
    store = None
    if path is not None:
        from corollary.database.warehouse_store import WarehouseStore
        from corollary.warehouse.warehouse import Warehouse

        warehouse = Warehouse.open(path, create=create)
        is_url = "://" in str(path)
        opened = OpenArguments(str(path) if is_url else str(warehouse.root.absolute()), options)
        store = WarehouseStore(
            warehouse, new_engine, frames, open_arguments=opened, has_query_log=options.log_queries
        )
        store.restore(state)
    return Database(state, store, existing=existing, outlets=outlets, publish=when)


def _scratch_directory(place: str | Path) -> str:
    """Return where the engine of a warehouse may write files for as long as it is open."""
    from corollary.warehouse.warehouse_catalog import parse_location, scratch_directory

    root, _ = parse_location(str(place))
    return scratch_directory(root)


def reopen(arguments: OpenArguments, spark: Any = None) -> Database:
    """Open a database again, in another process."""
    return open_with(arguments.location, arguments.options, spark=spark, create=False)
