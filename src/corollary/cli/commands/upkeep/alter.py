"""`corollary alter`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_warehouse
from corollary.cli.options import WorkOutputOptions
from corollary.cli.output import print_warnings
from corollary.cli.parameters import Pair, action, family, functors, pair, warehouse
from corollary.console import counted

if TYPE_CHECKING:
    from corollary.database.upkeep.alter import AlterResult


@click.command()
@warehouse
@click.argument("relation")
@action("--add", "'COLUMN: TYPE'", "A new column, the last one. May be repeated.")
@action(
    "--value",
    "COLUMN=VALUE",
    "What old tuples have in a new column. Default: null.",
    pair("has no `=`; write column=value", is_valid=lambda _: True),
)
@action(
    "--rename",
    "OLD=NEW",
    "A new name for a column. May be repeated.",
    pair("has no `=`; write column=name", is_valid=lambda _: True),
)
@action("--drop", "COLUMN", "A column to drop. May be repeated.")
@click.option(
    "--program",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    allow_from_autoenv=False,
    help="The program from now on, with the new declaration. May be repeated.",
)
@functors
@family("output", WorkOutputOptions)
def command(
    warehouse: str,
    relation: str,
    add: tuple[str, ...],
    value: tuple[Pair, ...],
    rename: tuple[Pair, ...],
    drop: tuple[str, ...],
    program: tuple[Path, ...],
    output: WorkOutputOptions,
) -> None:
    """Add, rename or drop columns of a base relation, keeping the data.

    Everything happens in one commit: the tuples are converted, whoever wrote them, and derived
    relations are derived again. Tuples that differ in dropped columns only become one.

    Without --program, the program in force is edited: a new column is `_` in the bodies of rules,
    and a dropped one must be `_` in all of them. The clauses that changed are printed; change your
    program files likewise before the next run. With --program, the new program determines that:
    columns that it declares and the relation does not have are new, those that it does not declare
    are dropped; only new names (--rename) and values (--value) are given as options.

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
    values, names = _unique("value", value), _unique("rename", rename)
    with output.reporting(0.0) as console, open_warehouse(warehouse, console) as database:
        from corollary.database.program.column_mapping import Alteration
        from corollary.database.program.loaded_program import read_programs
        from corollary.database.upkeep.alter import alter

        alteration = Alteration(relation, add, values, names, drop)
        altered = alter(database, alteration, read_programs(program) if program else None)
        published = database.publish()
        console.done()
        if published is not None:
            print_warnings(published.problems, console)
        output.show(altered.as_json, _lines(altered, is_edited=not program))


def _unique(option: str, pairs: tuple[Pair, ...]) -> dict[str, str]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise click.BadParameter(f"'{name}' is named twice", param_hint=f"'--{option}'")
    return dict(pairs)


def _lines(altered: "AlterResult", *, is_edited: bool) -> list[str]:
    merged = altered.before - altered.after
    note = f"; {counted(merged, 'tuple')} became equal to another" if merged > 0 else ""
    lines = [
        f"commit {altered.commit}: {altered.relation} has {counted(altered.after, 'tuple')}{note}"
    ]
    for name, (added, removed) in altered.changes.items():
        lines.append(f"{name}: +{added:,} −{removed:,}")
    if is_edited:
        lines += ["the program now says", f"  {altered.declaration}"]
        lines += [f"  {rule}" for rule in altered.rules]
    return lines
