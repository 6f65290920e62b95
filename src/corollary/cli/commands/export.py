"""`corollary export`."""

from pathlib import Path

import click

from corollary.cli.databases import open_to_read
from corollary.cli.options import LimitOptions, SnapshotOptions, WorkOutputOptions
from corollary.cli.output import print_json
from corollary.cli.parameters import family, functors, headers, warehouse
from corollary.cli.report.tables import counted
from corollary.console import LONG_SECONDS


@click.command()
@warehouse
@click.argument("relation")
@click.option(
    "--to", required=True, metavar="FILE", help="The file to write; its ending is its format."
)
@family("read", SnapshotOptions)
@headers
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@family("limits", LimitOptions)
@functors
@family("output", WorkOutputOptions)
def command(
    warehouse: str,
    relation: str,
    to: str,
    headers: bool,
    force: bool,
    read: SnapshotOptions,
    limits: LimitOptions,
    output: WorkOutputOptions,
) -> None:
    """Write a relation of a warehouse to a file.

    The ending of the file's name is its format: .csv (commas, texts in quotes), .tsv or .facts
    (tabs), .jsonl (an object a line) or .parquet; .gz after it compresses text. Rows are sorted.
    The file appears when it is complete, and not at all if anything goes wrong. A virtual relation
    is computed.

    \b
      corollary export warehouse link --to link.csv --headers
      corollary export warehouse link --to before.parquet --at 3
    """
    with (
        output.reporting(LONG_SECONDS) as console,
        open_to_read(warehouse, console, limits=limits.limits) as database,
    ):
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
