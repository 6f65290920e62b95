"""`corollary alter`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.warehouses import opened, warehouse
from corollary.console import TerminalConsole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corollary.database.upkeep.alter import Altered


@click.command()
@warehouse
@click.argument("relation")
@options.update("--add", "'COLUMN: TYPE'", "A new column, the last one. May be repeated.")
@options.update("--value", "COLUMN=VALUE", "What old tuples have in a new column. Default: null.")
@options.update("--rename", "OLD=NEW", "A new name for a column. May be repeated.")
@options.update("--drop", "COLUMN", "A column that goes. May be repeated.")
@click.option(
    "--program",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    allow_from_autoenv=False,
    help="The program from now on, with the new declaration. May be repeated.",
)
@options.format_
@options.quiet
def command(
    warehouse: str,
    relation: str,
    add: tuple[str, ...],
    value: tuple[str, ...],
    rename: tuple[str, ...],
    drop: tuple[str, ...],
    program: tuple[Path, ...],
    format: str,
    quiet: bool,
) -> None:
    """Add, rename or drop columns of a base relation, keeping the data.

    Everything happens in one commit: the tuples are converted, whoever wrote them, and derived
    relations are derived anew. Tuples that differ in dropped columns only become one.

    Without --program, the program in force is edited: a new column is `_` in the bodies of rules,
    and a dropped one must be `_` in all of them. The clauses that changed are printed; change your
    program files likewise before the next run. With --program, the new program says all that
    itself: columns that it declares and the relation has not are new, those that it does not
    declare go, and only new names (--rename) and values (--value) are left to say.

    \b
      corollary alter warehouse person --add 'note: symbol?'
      corollary alter warehouse person --add 'age: number' --value age=0 --rename id=key
      corollary alter warehouse person --drop note
      corollary alter warehouse person --program new.dl --rename id=key
    """
    if program and (add or drop):
        raise click.UsageError(
            "--program says itself which columns come and go: no --add or --drop"
        )
    pairs = {name: _pairs(name, given) for name, given in (("value", value), ("rename", rename))}
    console = TerminalConsole(quiet)
    with options.reported(format, console), opened(warehouse, console) as database:
        from corollary.database.program import read_programs
        from corollary.database.upkeep.alter import alter
        from corollary.database.upkeep.reshape import Alteration

        asked = Alteration(relation, add, pairs["value"], pairs["rename"], drop)
        altered = alter(database, asked, read_programs(program) if program else None)
        console.progress("publishing")
        published = database.publish()
        console.done()
        if published is not None:
            options.print_warnings(published.problems, console)
        if format == "json":
            options.print_json(altered.as_json())
            return
        for line in _lines(altered, is_edited=not program):
            click.echo(line)


def _pairs(option: str, given: "Iterable[str]") -> dict[str, str]:
    found = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise click.BadParameter(
                f"'{each}' has no `=`; write column={'value' if option == 'value' else 'name'}",
                param_hint=f"'--{option}'",
            )
        if name in found:
            raise click.BadParameter(f"'{name}' is named twice", param_hint=f"'--{option}'")
        found[name] = value
    return found


def _lines(altered: "Altered", *, is_edited: bool) -> list[str]:
    merged = altered.before - altered.after
    note = f"; {counted(merged, 'tuple')} became equal to another" if merged > 0 else ""
    found = [
        f"commit {altered.commit}: {altered.relation} has {counted(altered.after, 'tuple')}{note}"
    ]
    for name, (added, removed) in altered.changes.items():
        found.append(f"{name}: +{added:,} −{removed:,}")
    if is_edited:
        found += ["the program now says", f"  {altered.declaration}"]
        found += [f"  {rule}" for rule in altered.rules]
    return found
