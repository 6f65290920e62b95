"""`corollary shell`."""

import sys

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import MaintenanceOptions, OutputOptions
from corollary.cli.parameters import family, functors, warehouse


@click.command()
@warehouse
@family("maintenance", MaintenanceOptions)
@functors
@family("output", OutputOptions)
def command(warehouse: str, maintenance: MaintenanceOptions, output: OutputOptions) -> None:
    r"""Ask and change a warehouse line by line, in SQL and in Datalog.

    SQL ends with `;`, a goal or a rule in Datalog with `.`; both may take several lines. \? lists
    the commands: \d lists relations, \d NAME describes one, \explain shows a plan, \timing shows
    seconds, \q ends. On a terminal, Tab completes names, and the lines are kept for the next time.
    An error does not end the shell, and Ctrl-C interrupts only what runs. Entries can also come
    from a pipe; then the exit status is 1 if one of them had an error.

    \b
      corollary shell warehouse
      echo 'SELECT COUNT(*) FROM link;' | corollary shell warehouse
    """
    with (
        output.reporting() as console,
        open_warehouse(warehouse, console, maintenance.options) as database,
    ):
        from corollary.cli.shell.shell import Shell
        from corollary.cli.shell.terminal import line_reader
        from corollary.database.database import state_of

        def names() -> list[str]:
            relations = state_of(database).loaded.normal.relations.values()
            declared = [each for each in relations if each.is_declared]
            columns = {column for each in declared for column in each.columns}
            return [*sorted(each.name for each in declared), *sorted(columns)]

        shell = Shell(database, console, is_json=output.is_json)
        shell.run(line_reader(names))
        failed = shell.has_failed and not sys.stdin.isatty()
    sys.exit(1 if failed else 0)
