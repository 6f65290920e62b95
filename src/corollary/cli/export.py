"""`corollary export`."""

from pathlib import Path

import click

from corollary.cli import options
from corollary.cli.tables import counted
from corollary.cli.warehouses import opened, seen_by, warehouse
from corollary.console import TerminalConsole


@click.command()
@warehouse
@click.argument("relation")
@click.option(
    "--to", required=True, metavar="FILE", help="The file to write; its ending is its format."
)
@options.at
@options.as_reader
@options.headers
@click.option("--force", is_flag=True, help="Overwrite the file if there is one.")
@options.limits
@options.format_
@options.quiet
def command(
    warehouse: str,
    relation: str,
    to: str,
    at: int | None,
    reader: str | None,
    headers: bool,
    force: bool,
    format: str,
    quiet: bool,
    **rest: object,
) -> None:
    """Write a relation of a warehouse to a file.

    The ending of the file's name is its format: .csv (commas, texts in quotes), .tsv or .facts
    (tabs), .jsonl (an object a line) or .parquet; .gz behind it compresses text. Rows are sorted.
    The file appears when it is complete, and not at all if anything goes wrong. A virtual relation
    is computed.

    \b
      corollary export warehouse link --to link.csv --headers
      corollary export warehouse link --to before.parquet --at 3
    """
    console = TerminalConsole(quiet)
    with (
        options.reported(format, console),
        opened(warehouse, console, limits=options.limits_of(rest)) as database,
    ):
        from corollary.errors import InputError
        from corollary.warehouse.extensions import output_of
        from corollary.warehouse.outputs import write_all

        seen = seen_by(database, reader)
        view = (seen if at is None else seen.at(at)).relation(relation)
        if Path(to).exists() and not force:
            cure = "choose another name, or say `--force` to overwrite it"
            raise InputError.of("C0973", f"There is a file `{to}` already.", None, cure)
        table = view.arrow()
        write_all([output_of(table, view.shape, to, has_headers=headers)])
        if format == "json":
            options.print_json({"relation": relation, "file": to, "tuples": table.num_rows})
        else:
            console.note(f"{relation}: {counted(table.num_rows, 'tuple')} in {to}")
