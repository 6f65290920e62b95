"""`corollary demo`."""

import tempfile
from pathlib import Path

import click

from corollary.cli.commands.demo.local_part import run_local_part
from corollary.cli.commands.demo.page import show_page, sight_lines
from corollary.cli.commands.demo.spark_part import run_spark_part
from corollary.cli.commands.demo.steps import say
from corollary.cli.options import FormatOptions
from corollary.console import TerminalConsole


@click.command()
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the example into this directory and leave it there.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    help="Run one part only: the first one, in this process, or the second one, on Spark.",
)
@click.option("--serve", "is_served", is_flag=True, help="Open the page on the first part.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Where the page is; 0 takes any port that is free.",
)
def command(keep: Path | None, engine: str | None, is_served: bool, port: int) -> None:
    """Run the bundled example from end to end.

    A fibre network of a quarter of a million cables. The first part finds out what is fed from
    where and which homes are cut off; keeps that true when cables are cut and laid, shows what has
    changed and how much quicker that was than computing everything again; reads the Delta table
    that was published; and alerts those who watch for outages. The second part does the same with a
    fifth of the network on Spark, divided among its tasks.

    With `--serve` the first part ends with the page on its warehouse; one that `--keep` has left is
    opened as it is.

    \b
      corollary demo
      corollary demo --keep example
      corollary demo --serve
      corollary demo --engine spark
    """
    if is_served and engine == "spark":
        raise click.UsageError("The page is on the first part: leave out `--engine spark`.")
    is_there = keep is not None and (keep / "warehouse").exists()
    if is_there and not is_served:
        raise click.UsageError(
            f"There is a warehouse in `{keep}` already: open its page with `--serve`, or take "
            "another directory."
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        directory = keep or Path(temporary)
        with FormatOptions("text").reporting() as console:
            if engine != "spark" and not is_there:
                run_local_part(directory, console)
            if is_served:
                _serve(directory / "warehouse", port)
            else:
                _finish(directory, keep, engine, console)


def _finish(
    directory: Path, keep: Path | None, engine: str | None, console: TerminalConsole
) -> None:
    """Run the second part, and say what is left and how to look at it."""
    if engine != "local":
        run_spark_part(directory / "spark", console)
    if keep is not None:
        click.echo(f"\nThe example is in {keep}: network.dl, cable.facts, warehouse")
    if engine != "spark":
        show_page(directory / "warehouse", is_kept=keep is not None)


def _serve(warehouse: Path, port: int) -> None:
    """Open the page on a warehouse; end with Ctrl-C."""
    from corollary.cli.commands.serve import command as serve

    say("\nThe page: what to look at")
    for line in sight_lines():
        click.echo(f"    {line}")
    click.echo()
    serve.main([str(warehouse), "--port", str(port)], standalone_mode=False)
