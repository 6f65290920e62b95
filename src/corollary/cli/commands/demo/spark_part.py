"""The second part: the same program on Spark, its largest view divided among tasks."""

from importlib.util import find_spec
from pathlib import Path

import click

from corollary.cli.commands.demo.network import CUT, network, write_cables, write_example
from corollary.cli.commands.demo.steps import listed, say, show_alerts, update
from corollary.console import TerminalConsole

REGIONS = 4
"""A fifth of the network: most of the time goes into the start of a session."""
CUT_HERE = CUT[:1]
COMMAND = "corollary run network.dl --warehouse on_spark --placement tasks"


def run_spark_part(directory: Path, console: TerminalConsole) -> None:
    """Make a warehouse on Spark in a directory of its own, and cut a cable."""
    say("\nThe same program on Spark")
    if find_spec("pyspark") is None:
        click.echo("    left out: pyspark is not installed (pip install 'corollary[spark]')")
        return
    from corollary.database.opening import open_database

    cables = network(REGIONS)
    homes = write_example(directory, cables)
    click.echo(
        f"    {len(cables):,} cables, {homes:,} homes. What does not fit into one process is "
        "divided among\n    the tasks of a session: each keeps a part of `feeds`, and maintains it."
    )
    with open_database(
        directory / "on_spark", engine="spark", placement="tasks", console=console
    ) as database:
        say(COMMAND)
        update(database, directory)
        say(f"The digger cuts {listed(CUT_HERE)}")
        write_cables(directory, set(cables) - set(CUT_HERE))
        say(COMMAND)
        transaction, _ = update(database, directory)
        show_alerts(transaction)
