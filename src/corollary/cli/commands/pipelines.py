"""`corollary pipelines`: projects of Spark Declarative Pipelines, unchanged and incremental."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import LimitOptions, SourceOptions, WorkOutputOptions
from corollary.cli.parameters import family
from corollary.cli.report.tables import table
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from corollary.database.database import Database
    from corollary.pipelines.compile import CompiledProject
    from corollary.pipelines.fallback import SparkFallback
    from corollary.pipelines.graph import Project
    from corollary.pipelines.run import RunReport

SPEC_HELP = "The specification of the project. Default: spark-pipeline.yml, here or above."

spec = click.option("--spec", type=click.Path(path_type=Path), metavar="FILE", help=SPEC_HELP)
warehouse = click.option(
    "--warehouse",
    metavar="DIR|URL",
    help="Where the datasets are kept. Default: `corollary` in the storage of the project.",
)


def _names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (value or "").split(",") if each.strip())


@click.group()
def command() -> None:
    """Run a project of Spark Declarative Pipelines, unchanged; each run costs what has changed.

    A project is a spark-pipeline.yml and the Python and SQL files that it names. The first run
    reads all sources and computes every dataset; later runs read what is new, maintain the
    materialized views, append to the streaming tables, and make one commit, or none if nothing has
    changed. Datasets are Delta tables in the warehouse of the project. Java starts only for a
    dataset that we cannot maintain: `explain` says which, and why.

    \b
      corollary pipelines explain
      corollary pipelines run
      corollary pipelines run --full-refresh orders_bronze
    """


@click.command()
@spec
@warehouse
@click.option(
    "--refresh", callback=_names, metavar="NAMES", help="Refresh these datasets only: a,b."
)
@click.option(
    "--full-refresh",
    callback=_names,
    metavar="NAMES",
    help="Empty these datasets and compute them anew: flows read their streams from the start.",
)
@click.option("--full-refresh-all", is_flag=True, help="The same for all datasets.")
@family("sources", SourceOptions)
@family("limits", LimitOptions)
@family("output", WorkOutputOptions)
def run(
    spec: Path | None,
    warehouse: str | None,
    refresh: tuple[str, ...],
    full_refresh: tuple[str, ...],
    full_refresh_all: bool,
    sources: SourceOptions,
    limits: LimitOptions,
    output: WorkOutputOptions,
) -> None:
    """Bring the datasets of a project up to date with its sources and its text.

    All of it is one commit: no reader sees a part of it, and if anything is wrong, nothing is
    changed. A line for each dataset says how it was refreshed (incremental, recomputed, appended,
    Spark, unchanged), which rows came and went, in what time, and what computing it anew would
    take. Materialized views follow their sources whatever --refresh names.

    \b
      corollary pipelines run
      corollary pipelines run --spec etl/spark-pipeline.yml --format json
      corollary pipelines run --refresh customers,orders
    """
    with output.reporting(0.0) as console:
        from corollary.pipelines.run import Selection, run_project

        with opened(spec, warehouse, limits, console) as (database, compiled, fallback):
            for each in compiled.plans:
                if each.spark is not None:
                    reason = each.spark[1].reason.message
                    console.note(f"{each.dataset.name} is left to Spark: {reason}")
            selection = Selection(refresh, full_refresh, full_refresh_all)
            report = run_project(database, compiled, fallback, selection, sources.guards)
            output.show(report.as_json, _lines(report))
            for problem in getattr(report.outcome.published, "problems", ()):
                console.note(str(problem))


@click.command()
@spec
@warehouse
@family("output", WorkOutputOptions)
def explain(spec: Path | None, warehouse: str | None, output: WorkOutputOptions) -> None:
    """Say how each dataset of a project is refreshed, and why one is left to Spark.

    \b
      corollary pipelines explain
      corollary pipelines explain --spec etl/spark-pipeline.yml --format json
    """
    with (
        output.reporting(0.0) as console,
        opened(spec, warehouse, None, console) as (_, compiled, fallback),
    ):
        fallback.close()
        _show_plans(compiled, output)


@click.command("dry-run")
@spec
@family("output", WorkOutputOptions)
def dry_run(spec: Path | None, output: WorkOutputOptions) -> None:
    """Check a project without its data: load it, and bind all of its queries.

    All mistakes are reported at once, each at its line. Nothing is executed or kept, and Java is
    never started. The datasets are listed in the order of a run, with how each would be refreshed.

    \b
      corollary pipelines dry-run
      corollary pipelines dry-run --spec etl/spark-pipeline.yml --format json
    """
    with output.reporting(0.0):
        from corollary.pipelines.dry_run import compile_dry
        from corollary.pipelines.project import load_project

        _show_plans(compile_dry(load_project(spec)), output)


def _show_plans(compiled: "CompiledProject", output: WorkOutputOptions) -> None:
    """Print how each dataset is refreshed."""
    rows = [
        (
            each.dataset.name,
            str(each.dataset.kind),
            each.how,
            "" if each.spark is None else each.spark[1].reason.message,
        )
        for each in compiled.plans
    ]
    names = ("dataset", "kind", "refreshed", "reason")
    output.show(
        lambda: {"datasets": [dict(zip(names, row, strict=True)) for row in rows]},
        table(names, rows),
    )


@contextmanager
def opened(
    spec: Path | None,
    warehouse: str | None,
    limits: LimitOptions | None,
    console: TerminalConsole,
) -> "Iterator[tuple[Database, CompiledProject, SparkFallback]]":
    """Load a project, and open its warehouse."""
    from corollary.database.options import LOCAL, DatabaseOptions
    from corollary.pipelines.fallback import SparkFallback
    from corollary.pipelines.lowering.lower import lower_project
    from corollary.pipelines.project import load_project
    from corollary.pipelines.run import compile_project
    from corollary.pipelines.sources import source_columns

    project = load_project(spec)
    options = DatabaseOptions(LOCAL, limits=None if limits is None else limits.limits)
    place = warehouse or warehouse_of(project)
    with open_warehouse(place, console, options, create=True) as database:
        fallback = SparkFallback(project, console=console)
        try:
            compiled = compile_project(
                lambda known: lower_project(project, source_columns, known), database, fallback
            )
            yield database, compiled, fallback
        finally:
            fallback.close()


def warehouse_of(project: "Project") -> str:
    """Return where a project keeps its datasets: in the storage that it names."""
    storage = project.storage.removeprefix("file://").removeprefix("file:")
    return str(project.root / storage / "corollary")


def _lines(report: "RunReport") -> list[str]:
    """Return a run as a table."""
    rows = [
        (
            each.name,
            str(each.refreshed),
            f"+{each.added:,}" if each.added else "",
            f"−{each.removed:,}" if each.removed else "",
            f"{each.seconds:.2f} s",
            "" if each.full_seconds is None else f"{each.full_seconds:.2f} s",
        )
        for each in report.datasets
    ]
    names = ("dataset", "refreshed", "added", "removed", "took", "anew")
    last = "" if report.is_new else "nothing has changed since "
    return [*table(names, rows), f"{last}commit {report.commit}"]


command.add_command(run, "run")
command.add_command(explain, "explain")
command.add_command(dry_run, "dry-run")
