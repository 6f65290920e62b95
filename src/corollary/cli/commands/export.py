"""`corollary export` and `corollary import`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corollary.cli.databases import open_to_read
from corollary.cli.options import LimitOptions, SnapshotOptions, WorkOutputOptions
from corollary.cli.output import print_json
from corollary.cli.parameters import family, functors, headers, warehouse
from corollary.console import LONG_SECONDS, counted

if TYPE_CHECKING:
    from corollary.database.upkeep.transfer import TransferResult


@click.command()
@warehouse
@click.argument("relation", required=False)
@click.option("--all", "is_all", is_flag=True, help="Export everything, into a directory.")
@click.option(
    "--to",
    required=True,
    metavar="FILE",
    help="The file to write; its ending is its format. With --all, a directory.",
)
@family("read", SnapshotOptions)
@headers
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@family("limits", LimitOptions)
@functors
@family("output", WorkOutputOptions)
def command(
    warehouse: str,
    relation: str | None,
    is_all: bool,
    to: str,
    headers: bool,
    force: bool,
    read: SnapshotOptions,
    limits: LimitOptions,
    output: WorkOutputOptions,
) -> None:
    """Write a relation of a warehouse to a file, or everything to a directory.

    The ending of the file's name is its format: .csv (commas, texts in quotes), .tsv or .facts
    (tabs), .jsonl (an object a line) or .parquet; .gz after it compresses text. Rows are sorted.
    The file appears when it is complete, and not at all if anything goes wrong. A virtual relation
    is computed.

    With --all, the program becomes a text, and what was written to base relations Parquet files;
    with positions of sources, grants and idempotency keys. Every later version of corollary makes a
    warehouse of it with `corollary import`. History, tokens and alerts that are not delivered are
    not exported: `corollary backup` copies them.

    \b
      corollary export warehouse link --to link.csv --headers
      corollary export warehouse link --to before.parquet --at 3
      corollary export warehouse --all --to exported
    """
    if is_all == (relation is not None) or (is_all and (read.at is not None or read.reader)):
        raise click.UsageError("name a relation, or say --all (without --at and --as)")
    with (
        output.reporting(LONG_SECONDS) as console,
        open_to_read(warehouse, console, limits.limits) as database,
    ):
        if relation is None:
            from corollary.database.upkeep.transfer import export_all

            exported = export_all(database, to)
            output.show(exported.as_json, [_line(f"commit {exported.commit} in {to}", exported)])
            return
        from corollary.errors import InputError
        from corollary.warehouse.formats.file_extensions import output_of
        from corollary.warehouse.formats.output_files import write_outputs

        view = read.view(database).relation(relation)
        if Path(to).exists() and not force:
            cure = "choose another name, or say `--force` to overwrite it"
            raise InputError.of("C0973", f"There is a file `{to}` already.", None, cure)
        table = view.arrow()
        write_outputs([output_of(table, view.shape, to, has_headers=headers)])
        if output.is_json:
            print_json({"relation": relation, "file": to, "tuples": table.num_rows})
        else:
            console.note(f"{relation}: {counted(table.num_rows, 'tuple')} in {to}")


@click.command()
@click.argument("exported", metavar="FROM")
@warehouse
@family("limits", LimitOptions)
@functors
@family("output", WorkOutputOptions)
def import_command(
    exported: str, warehouse: str, limits: LimitOptions, output: WorkOutputOptions
) -> None:
    """Make a warehouse of what `corollary export --all` has written.

    WAREHOUSE is a directory that is empty or does not exist, or postgresql://USER@HOST/NAME?data=PLACE
    for a database without a warehouse. Views are computed again, in one commit; no trigger is set
    off, no alert is sent, and constraints may be violated as they were. Tokens are made again with
    `corollary token add`.

    \b
      corollary export old --all --to exported
      corollary import exported new
    """
    with output.reporting(LONG_SECONDS) as console:
        from corollary.database.upkeep.transfer import import_all

        imported = import_all(exported, warehouse, limits.limits, console)
        output.show(imported.as_json, [_line(f"imported: commit {imported.commit}", imported)])


def _line(what: str, result: "TransferResult") -> str:
    counts = (("relation", result.relations), ("tuple", result.tuples), ("grant", result.grants))
    listed = ", ".join(counted(count, noun) for noun, count in (*counts, ("key", result.keys)))
    return f"{what}: {listed}"
