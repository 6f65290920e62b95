"""`corollary documents xquery`."""

import click

from corollary.cli import options
from corollary.console import TerminalConsole


@click.command()
@click.option("--query", required=True, help="A query without answers and joins.")
@options.format_
def command(query: str, format: str) -> None:
    """Print an XQuery that computes the value of a query over the XML of a document.

    Its result is 1, 0.5 or 0; its external variable $ended names functions that have ended. It
    needs no Corollary to run: any processor of XQuery 3.1 will do.

    \b
      corollary documents xquery --query '/r[a][.//b]' > value.xq
    """
    console = TerminalConsole(True)
    with options.reported(format, console):
        from corollary.documents.xquery import xquery_of

        text = xquery_of(query)
        if format == "json":
            options.print_json({"xquery": text})
        else:
            click.echo(text, nl=False)
