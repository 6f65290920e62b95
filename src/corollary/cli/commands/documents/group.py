"""`corollary documents`: the group of its commands, and `corollary documents xquery`."""

import click

from corollary.cli.commands.documents.match import command as match
from corollary.cli.commands.documents.watch import command as watch
from corollary.cli.options import FormatOptions
from corollary.cli.parameters import family


@click.group()
def command() -> None:
    """Tree patterns over documents that streams still write into.

    A document is a tree in XML, JSON or as a term such as 'r[a !f]'; `!f` (in XML <?call f?>) is a
    function, beside which a stream inserts further trees. A query such as '/r[a]/b$x' is true,
    false for ever, or not true yet; its answers are sure, or possible. `key $x` names
    variables that no two answers share: what could only give such an answer is dropped.

    \b
      corollary documents match --doc 'r[a !f]' --query '/r[a][b$x]'
      corollary documents match --doc orders.xml --query '//order[paid]/id/*$o' --update f=new.xml
      corollary documents match --doc 'r[a[1] b[7 !f]]' --query '/r[a/*$x][b/*$y] key $x' --gc
      corollary documents xquery --query '/r[a][.//b]'
    """


@click.command()
@click.option("--query", required=True, help="A query without answers and joins.")
@family("output", FormatOptions)
def xquery(query: str, output: FormatOptions) -> None:
    """Print an XQuery that computes the value of a query over the XML of a document.

    Its result is 1, 0.5 or 0; its external variable $ended names functions that have ended. It
    needs no Corollary to run: any processor of XQuery 3.1 will do.

    \b
      corollary documents xquery --query '/r[a][.//b]' > value.xq
    """
    with output.reporting():
        from corollary.documents.queries.xquery import xquery_of

        text = xquery_of(query)
        output.show(lambda: {"xquery": text}, [text.removesuffix("\n")])


command.add_command(match, "match")
command.add_command(watch, "watch")
command.add_command(xquery, "xquery")
